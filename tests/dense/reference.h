// Naive references in double for the layers, written from the formulas of capi's layers.h, and what
// the tests share: matrices with a row stride, random numbers, comparisons.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/tensor.h"
#include "dense/layers/mlp.h"
#include "support/one_nan.h"

namespace shardrec::dense::test {

// Rows of floats with a gap behind each; the gap holds a mark that nobody may change.
class Rows {
 public:
  Rows(int64_t rows, int64_t cols, int64_t gap = 0)
      : rows_(rows),
        cols_(cols),
        stride_(cols + gap),
        data_(static_cast<size_t>(rows * stride_), kMark) {}

  core::Matrix view() { return {data_.data(), rows_, cols_, stride_}; }
  float& at(int64_t r, int64_t c) { return data_[static_cast<size_t>(r * stride_ + c)]; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }

  template <class Generator>
  Rows& fill(Generator& generator, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < cols_; ++c) at(r, c) = normal(generator);
    }
    return *this;
  }
  bool gaps_untouched() {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = cols_; c < stride_; ++c) {
        if (at(r, c) != kMark) return false;
      }
    }
    return true;
  }
  // The elements without the gaps.
  std::vector<float> values() {
    std::vector<float> out;
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = 0; c < cols_; ++c) out.push_back(at(r, c));
    }
    return out;
  }

 private:
  static constexpr float kMark = -12345.0F;
  int64_t rows_;
  int64_t cols_;
  int64_t stride_;
  std::vector<float> data_;
};

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && shardrec::test::same_numbers(a.data(), b.data(), a.size());
}

// |value - expected| <= tolerance * max(1, |expected|, scale).
inline void expect_near(std::span<const float> value, std::span<const double> expected,
                        double tolerance, const char* what) {
  ASSERT_EQ(value.size(), expected.size()) << what;
  for (size_t i = 0; i < value.size(); ++i) {
    const double limit = tolerance * std::max(1.0, std::fabs(expected[i]));
    ASSERT_LE(std::fabs(value[i] - expected[i]), limit)
        << what << " element " << i << " expected " << expected[i] << " got " << value[i];
  }
}

// A stack of layers in double.
struct ReferenceMlp {
  struct Layer {
    int64_t inputs, outputs;
    bool relu;
    std::vector<double> weight, bias;
  };
  std::vector<Layer> layers;

  // Takes the parameters as they are in `mlp`; relu tells the activations.
  ReferenceMlp(Mlp& mlp, const std::vector<bool>& relu) {
    const Parameters& parameters = mlp.parameters();
    for (size_t l = 0; l < relu.size(); ++l) {
      const ParameterInfo& weight = parameters.infos()[2 * l];
      const ParameterInfo& bias = parameters.infos()[2 * l + 1];
      const float* w = parameters.values(weight.offset);
      const float* b = parameters.values(bias.offset);
      layers.push_back({weight.shape[1], weight.shape[0], relu[l],
                        std::vector<double>(w, w + weight.size),
                        std::vector<double>(b, b + bias.size)});
    }
  }

  // Outputs of every layer for one sample; [0] is the input.
  std::vector<std::vector<double>> run(const std::vector<double>& input) const {
    std::vector<std::vector<double>> values{input};
    for (const Layer& layer : layers) {
      std::vector<double> y(static_cast<size_t>(layer.outputs));
      for (size_t o = 0; o < y.size(); ++o) {
        double sum = layer.bias[o];
        for (size_t i = 0; i < static_cast<size_t>(layer.inputs); ++i) {
          sum += layer.weight[o * static_cast<size_t>(layer.inputs) + i] * values.back()[i];
        }
        y[o] = layer.relu && sum < 0 ? 0 : sum;
      }
      values.push_back(std::move(y));
    }
    return values;
  }

  struct Gradients {
    std::vector<std::vector<double>> weight, bias;  // by layer
    std::vector<double> input;                      // [batch, inputs]
  };
  Gradients gradients(Rows& input, Rows& output_gradient) const {
    Gradients result;
    for (const Layer& layer : layers) {
      result.weight.emplace_back(layer.weight.size(), 0.0);
      result.bias.emplace_back(layer.bias.size(), 0.0);
    }
    for (int64_t s = 0; s < input.rows(); ++s) {
      std::vector<double> x;
      for (int64_t c = 0; c < input.cols(); ++c) x.push_back(input.at(s, c));
      const auto values = run(x);
      std::vector<double> dy;
      for (int64_t c = 0; c < output_gradient.cols(); ++c) dy.push_back(output_gradient.at(s, c));
      for (size_t l = layers.size(); l-- > 0;) {
        const Layer& layer = layers[l];
        const auto inputs = static_cast<size_t>(layer.inputs);
        std::vector<double> dx(inputs, 0.0);
        for (size_t o = 0; o < dy.size(); ++o) {
          const double dz = layer.relu && values[l + 1][o] <= 0 ? 0 : dy[o];
          result.bias[l][o] += dz;
          for (size_t i = 0; i < inputs; ++i) {
            result.weight[l][o * inputs + i] += dz * values[l][i];
            dx[i] += dz * layer.weight[o * inputs + i];
          }
        }
        dy = std::move(dx);
      }
      result.input.insert(result.input.end(), dy.begin(), dy.end());
    }
    return result;
  }
};

// Samples, their output and gradients in the host's memory, with a gap behind each row.
struct Samples {
  Samples(const Mlp& mlp, int64_t size, int64_t gap = 0, unsigned seed = 1)
      : input(size, mlp.inputs(), gap),
        output(size, mlp.outputs(), gap),
        dy(size, mlp.outputs(), gap),
        dx(size, mlp.inputs(), gap) {
    std::mt19937 random(static_cast<unsigned>(size) + seed);
    input.fill(random);
    dy.fill(random);
  }
  void train(Mlp& mlp) {
    mlp.forward(input.view(), output.view());
    mlp.backward(dy.view(), dx.view());
  }
  Rows input, output, dy, dx;
};

inline std::span<const float> values_of(Mlp& mlp, size_t parameter) {
  const ParameterInfo& info = mlp.parameters().infos()[parameter];
  return {mlp.parameters().values(info.offset), static_cast<size_t>(info.size)};
}
inline std::span<const float> gradients_of(Mlp& mlp, size_t parameter) {
  const ParameterInfo& info = mlp.parameters().infos()[parameter];
  return {mlp.parameters().gradients(info.offset), static_cast<size_t>(info.size)};
}

}  // namespace shardrec::dense::test
