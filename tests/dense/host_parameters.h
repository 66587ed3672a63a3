// A host's own model for tests of DDP: parameters whose gradients are computed by the test, and the
// same training by one rank that has the batches of all, in float64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "dense/ddp/ddp.h"

namespace shardrec::dense {

inline core::FlatView flat(std::span<float> memory) {
  return {.data = memory.data(),
          .size = static_cast<int64_t>(memory.size()),
          .dtype = SHARDREC_FLOAT32};
}

// Element i of a parameter is fitted to samples (x, y) of each rank and step by (w c(i) - y)^2 / 2.
class HostModel {
 public:
  explicit HostModel(const std::vector<int64_t>& sizes) {
    for (const int64_t size : sizes) {
      values_.emplace_back(static_cast<size_t>(size));
      for (size_t i = 0; i < values_.back().size(); ++i) {
        values_.back()[i] = static_cast<float>(noise(values_.size(), i));
      }
    }
    gradients_ = values_;
  }

  void add_to(Ddp& ddp) {
    for (size_t p = 0; p < size(); ++p) {
      ddp.add("p" + std::to_string(p), {static_cast<int64_t>(values_[p].size())}, flat(values_[p]),
              flat(gradients_[p]));
    }
  }

  size_t size() const { return values_.size(); }
  std::vector<float>& gradient(size_t p) { return gradients_[p]; }
  std::vector<float> all_values() const {
    std::vector<float> all;
    for (const auto& values : values_) all.insert(all.end(), values.begin(), values.end());
    return all;
  }

  void zero_gradients() {
    for (auto& gradient : gradients_) std::fill(gradient.begin(), gradient.end(), 0.0F);
  }
  // Adds the gradient of this rank's sample of this step.
  void backward(size_t p, int rank, int step) {
    for (size_t i = 0; i < values_[p].size(); ++i) {
      gradients_[p][i] +=
          static_cast<float>(slope(static_cast<double>(values_[p][i]), i, rank, step));
    }
  }
  void step() {
    for (size_t p = 0; p < size(); ++p) {
      for (size_t i = 0; i < values_[p].size(); ++i) {
        values_[p][i] -= static_cast<float>(kRate) * gradients_[p][i];
      }
    }
  }

  // After training from the beginning with the mean over the ranks.
  void expect_near_one_rank(int ranks, int steps, int micro_steps) const {
    for (size_t p = 0; p < size(); ++p) {
      for (size_t i = 0; i < values_[p].size(); i += i < 1000 ? 1 : 13) {
        double w = static_cast<float>(noise(p + 1, i));
        for (int step = 0; step < steps; ++step) {
          double sum = 0;
          for (int micro = 0; micro < micro_steps; ++micro) {
            for (int rank = 0; rank < ranks; ++rank) {
              sum += slope(w, i, rank, step * micro_steps + micro);
            }
          }
          w -= kRate * sum / ranks;
        }
        ASSERT_NEAR(values_[p][i], w, 2e-5) << "parameter " << p << ", element " << i;
      }
    }
  }

 private:
  static constexpr double kRate = 0.05;

  static double noise(size_t a, size_t b) {
    const double x = std::sin(static_cast<double>(a) * 12.9898 + static_cast<double>(b) * 78.233);
    return 2 * (x * 43758.5453 - std::floor(x * 43758.5453)) - 1;
  }
  static double slope(double w, size_t i, int rank, int step) {
    const double c = 0.5 + 0.25 * static_cast<double>(i % 5);
    const double y = static_cast<double>((rank * 31 + step * 17) % 23) / 23;
    return (w * c - y) * c;
  }

  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;
};

}  // namespace shardrec::dense
