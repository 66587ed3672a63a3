// A stack of layers of all kinds in double, written from the formulas of capi's layers.h: the outputs and,
// by the chain rule sample by sample, the gradients. What dropout drops is computed word by word.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compute/math/scalar.h"
#include "dense/layers/mlp.h"
#include "dense/reference.h"

namespace shardrec::dense::test {

using Values = std::vector<double>;

// Does a dropout layer drop this element?
struct Dropped {
  uint64_t seed = 0;
  uint32_t layer = 0;
  uint32_t forward = 0;
  double rate = 0;

  bool operator()(uint64_t position) const {
    const auto words =
        compute::math::philox({static_cast<uint32_t>(position / 4),
                               static_cast<uint32_t>(position / 4 >> 32), layer, forward},
                              compute::math::philox_key(seed));
    return words[position % 4] < std::floor(rate * 4294967296.0);
  }
};

class ReferenceStack {
 public:
  // What dropout layers do: of a forward in training of that number, or none.
  struct Dropout {
    uint64_t seed = 0;
    int64_t forward = -1;  // -1: evaluation
  };

  explicit ReferenceStack(const Mlp& mlp) : shapes_(mlp.shapes()) {
    for (const ParameterInfo& info : mlp.parameters().infos()) {
      const float* from = mlp.parameters().values(info.offset);
      values[info.name] = Values(from, from + info.size);
      gradients[info.name] = Values(static_cast<size_t>(info.size), 0.0);
    }
    int64_t width = mlp.inputs();
    for (size_t l = 0; l < shapes_.size(); ++l) {
      const bool goes_on = l > 0 && shapes_[l].kind == SHARDREC_LAYER_CROSS &&
                           shapes_[l - 1].kind == SHARDREC_LAYER_CROSS;
      origins_.push_back(goes_on ? origins_.back() : l);
      if (shapes_[l].kind == SHARDREC_LAYER_LINEAR) width = shapes_[l].outputs;
      widths_.push_back(static_cast<size_t>(width));
    }
  }

  // By name.
  std::map<std::string, Values> values;
  std::map<std::string, Values> gradients;  // what backward() has added up
  Dropout dropout;

  // Outputs of all layers for the sample in that row of the batch; [0] is the input.
  std::vector<Values> run(const Values& input, int64_t row) {
    std::vector<Values> xs{input};
    for (size_t l = 0; l < shapes_.size(); ++l) xs.push_back(forward(l, xs, row));
    return xs;
  }

  // Adds to the gradients of the parameters; returns that of the input.
  Values backward(const Values& input, int64_t row, const Values& output_gradient) {
    const std::vector<Values> xs = run(input, row);
    std::vector<Values> ds;
    for (const Values& x : xs) ds.emplace_back(x.size(), 0.0);
    ds.back() = output_gradient;
    for (size_t l = shapes_.size(); l-- > 0;) back(l, xs, ds, row);
    return ds[0];
  }

 private:
  Values& value(size_t layer, const char* name) {
    return values.at("layer." + std::to_string(layer) + "." + name);
  }
  Values& gradient(size_t layer, const char* name) {
    return gradients.at("layer." + std::to_string(layer) + "." + name);
  }
  static Values times(const Values& matrix, const Values& x) {
    Values y(matrix.size() / x.size(), 0.0);
    for (size_t o = 0; o < y.size(); ++o) {
      for (size_t i = 0; i < x.size(); ++i) y[o] += matrix[o * x.size() + i] * x[i];
    }
    return y;
  }
  // Of z = W x: adds dz x^T to dW, returns W^T dz.
  static Values times_back(const Values& matrix, const Values& x, const Values& dz, Values& dw) {
    Values dx(x.size(), 0.0);
    for (size_t o = 0; o < dz.size(); ++o) {
      for (size_t i = 0; i < x.size(); ++i) {
        dx[i] += matrix[o * x.size() + i] * dz[o];
        dw[o * x.size() + i] += dz[o] * x[i];
      }
    }
    return dx;
  }
  bool drops(size_t layer, int64_t row, size_t column) const {
    if (dropout.forward < 0) return false;
    const auto width = static_cast<int64_t>(widths_[layer]);
    return Dropped{dropout.seed, static_cast<uint32_t>(layer),
                   static_cast<uint32_t>(dropout.forward),
                   shapes_[layer].rate}(static_cast<uint64_t>(row * width) + column);
  }
  double dropout_factor(size_t layer) const {
    return dropout.forward < 0 ? 1.0 : 1 / (1 - shapes_[layer].rate);
  }
  struct Moments {
    double mean = 0;
    double deviation = 0;
  };
  Moments moments(size_t layer, const Values& x) const {
    double mean = 0, variance = 0;
    for (const double v : x) mean += v / static_cast<double>(x.size());
    for (const double v : x) variance += (v - mean) * (v - mean) / static_cast<double>(x.size());
    return {mean, std::sqrt(variance + shapes_[layer].epsilon)};
  }
  // x W^T + b of a cross layer, before it is multiplied by its origin.
  Values product(size_t layer, const Values& x) {
    Values u =
        times(value(layer, "weight"), shapes_[layer].rank > 0 ? times(value(layer, "down"), x) : x);
    for (size_t i = 0; i < u.size(); ++i) u[i] += value(layer, "bias")[i];
    return u;
  }

  Values forward(size_t l, const std::vector<Values>& xs, int64_t row) {
    const Values& x = xs[l];
    Values y;
    switch (shapes_[l].kind) {
      case SHARDREC_LAYER_CROSS:
        y = product(l, x);
        for (size_t i = 0; i < y.size(); ++i) y[i] = xs[origins_[l]][i] * y[i] + x[i];
        return y;
      case SHARDREC_LAYER_LAYER_NORM: {
        const auto [mean, deviation] = moments(l, x);
        for (size_t i = 0; i < x.size(); ++i) {
          y.push_back((x[i] - mean) / deviation * value(l, "weight")[i] + value(l, "bias")[i]);
        }
        return y;
      }
      case SHARDREC_LAYER_DROPOUT:
        for (size_t i = 0; i < x.size(); ++i) {
          y.push_back(drops(l, row, i) ? 0 : x[i] * dropout_factor(l));
        }
        return y;
      default:
        y = times(value(l, "weight"), x);
        for (size_t o = 0; o < y.size(); ++o) {
          y[o] += value(l, "bias")[o];
          if (shapes_[l].activation == SHARDREC_ACTIVATION_RELU && y[o] < 0) y[o] = 0;
        }
        return y;
    }
  }

  // Adds to ds[l], the gradient of the layer's input; ds[l + 1] is whole.
  void back(size_t l, const std::vector<Values>& xs, std::vector<Values>& ds, int64_t row) {
    switch (shapes_[l].kind) {
      case SHARDREC_LAYER_CROSS:
        return cross_back(l, xs, ds);
      case SHARDREC_LAYER_LAYER_NORM:
        return norm_back(l, xs[l], ds[l + 1], ds[l]);
      case SHARDREC_LAYER_DROPOUT:
        for (size_t i = 0; i < xs[l].size(); ++i) {
          if (!drops(l, row, i)) ds[l][i] += ds[l + 1][i] * dropout_factor(l);
        }
        return;
      default: {
        Values dz = ds[l + 1];
        for (size_t o = 0; o < dz.size(); ++o) {
          if (shapes_[l].activation == SHARDREC_ACTIVATION_RELU && xs[l + 1][o] <= 0) dz[o] = 0;
          gradient(l, "bias")[o] += dz[o];
        }
        add(times_back(value(l, "weight"), xs[l], dz, gradient(l, "weight")), ds[l]);
      }
    }
  }
  static void add(const Values& from, Values& to) {
    for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }
  void cross_back(size_t l, const std::vector<Values>& xs, std::vector<Values>& ds) {
    const Values &x = xs[l], &origin = xs[origins_[l]];
    const Values dy = ds[l + 1], u = product(l, x);
    Values dz = dy;
    for (size_t i = 0; i < dz.size(); ++i) {
      dz[i] *= origin[i];
      gradient(l, "bias")[i] += dz[i];
      ds[origins_[l]][i] += dy[i] * u[i];
    }
    add(dy, ds[l]);
    if (shapes_[l].rank == 0) {
      add(times_back(value(l, "weight"), x, dz, gradient(l, "weight")), ds[l]);
      return;
    }
    const Values low = times(value(l, "down"), x);
    const Values dlow = times_back(value(l, "weight"), low, dz, gradient(l, "weight"));
    add(times_back(value(l, "down"), x, dlow, gradient(l, "down")), ds[l]);
  }
  // From the derivatives of mean and deviation: dx_j = sum_i g_i (delta_ij - 1/n - h_i h_j / n) / s.
  void norm_back(size_t l, const Values& x, const Values& dy, Values& dx) {
    const auto [mean, deviation] = moments(l, x);
    const auto n = static_cast<double>(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double h = (x[i] - mean) / deviation, g = dy[i] * value(l, "weight")[i];
      gradient(l, "weight")[i] += dy[i] * h;
      gradient(l, "bias")[i] += dy[i];
      for (size_t j = 0; j < x.size(); ++j) {
        const double other = (x[j] - mean) / deviation;
        dx[j] += g * ((i == j ? 1 : 0) - 1 / n - h * other / n) / deviation;
      }
    }
  }

  std::vector<LayerShape> shapes_;
  std::vector<size_t> origins_;
  std::vector<size_t> widths_;
};

}  // namespace shardrec::dense::test
