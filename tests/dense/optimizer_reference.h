// The optimizers of layers as formulas in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "plan/model/model.h"

namespace shardrec::dense::test {

// One parameter: of LAMB, what has one ratio.
struct OptimizerReference {
  plan::Optimizer optimizer;
  std::vector<double> w;
  std::vector<double> first = std::vector<double>(w.size());
  std::vector<double> second = std::vector<double>(w.size());
  double ratio = 1;  // LAMB's last one

  // Step t, from 1.
  void step(std::span<const float> gradient, int t) {
    const auto& o = optimizer;
    const bool decouple = o.weight_decay_mode == SHARDREC_WEIGHT_DECAY_DECOUPLE;
    std::vector<double> directions(w.size());
    for (size_t i = 0; i < w.size(); ++i) {
      double g = gradient[i];
      if (o.max_gradient > 0) g = std::min(std::max(g, -o.max_gradient), o.max_gradient);
      if (o.weight_decay_mode == SHARDREC_WEIGHT_DECAY_L2) g += o.weight_decay * w[i];
      const double undecayed = w[i];
      if (decouple) w[i] *= 1 - o.learning_rate * o.weight_decay;
      switch (o.kind) {
        case SHARDREC_OPTIMIZER_MOMENTUM_SGD:
          first[i] = t == 1 ? g : o.momentum * first[i] + g;  // as PyTorch begins
          w[i] -= o.learning_rate * first[i];
          break;
        case SHARDREC_OPTIMIZER_ADAGRAD:
          first[i] += g * g;
          w[i] -= o.learning_rate * g / (std::sqrt(first[i]) + o.eps);
          break;
        case SHARDREC_OPTIMIZER_ADAM:
          w[i] -= o.learning_rate * adam_direction(i, g, t);
          break;
        case SHARDREC_OPTIMIZER_LAMB:
          w[i] = undecayed;
          directions[i] = adam_direction(i, g, t) + (decouple ? o.weight_decay * w[i] : 0);
          break;
        default:
          w[i] -= o.learning_rate * g;
      }
    }
    if (o.kind != SHARDREC_OPTIMIZER_LAMB) return;
    const double length = norm(directions);
    ratio = norm(w) == 0 || length == 0 ? 1 : norm(w) / length;
    for (size_t i = 0; i < w.size(); ++i) w[i] -= o.learning_rate * ratio * directions[i];
  }

 private:
  static double norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double each : x) sum += each * each;
    return std::sqrt(sum);
  }

  double adam_direction(size_t i, double g, int t) {
    const auto& o = optimizer;
    first[i] = o.beta1 * first[i] + (1 - o.beta1) * g;
    second[i] = o.beta2 * second[i] + (1 - o.beta2) * g * g;
    const double mean = first[i] / (1 - std::pow(o.beta1, t));
    const double square = second[i] / (1 - std::pow(o.beta2, t));
    return mean / (std::sqrt(square) + o.eps);
  }
};

}  // namespace shardrec::dense::test
