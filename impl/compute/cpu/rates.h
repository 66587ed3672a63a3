// The part of the optimizers' formulas that is done once per row and range of sums (optimizer.h).
// Called by every set of kernels.
#pragma once

#include <cmath>

#include "compute/optimizer.h"

namespace shardrec::compute::cpu {

// kRowwiseAdagrad: moves h; k.
inline float adagrad_rate(const OptimizerStep& step, float& h, float sum, float columns) noexcept {
  h = h + sum / columns;
  return step.learning_rate / (std::sqrt(h) + step.eps);
}

// Partial row-wise forms: moves v; a.
inline float partial_scale(const OptimizerStep& step, float& v, float sum, float columns) noexcept {
  v = std::fma(step.beta2, v, step.one_minus_beta2 * (sum / columns));
  return step.bias1 / (std::sqrt(step.bias2 * v) + step.eps);
}

// LAMB: k of W and R.
inline float trust_rate(const OptimizerStep& step, float weights, float directions) noexcept {
  if (weights == 0 || directions <= 0) return step.learning_rate;
  return step.learning_rate * (std::sqrt(weights) / std::sqrt(directions));
}

// kPartialRowwiseLamb: R of a and the sums.
inline float partial_directions(const OptimizerStep& step, float a, const float* sums) noexcept {
  const float undecayed = (a * a) * sums[1];
  if (step.decay_mode != WeightDecay::kDecouple) return undecayed;
  const float decay = step.weight_decay;
  return std::fma(decay * decay, sums[3], std::fma(2 * (a * decay), sums[2], undecayed));
}

// kLarsSgd: a of the sums.
inline float lars_rate(const OptimizerStep& step, const float* sums) noexcept {
  const float weights = std::sqrt(sums[0]);
  float below = std::sqrt(sums[1]);
  if (step.decay_mode == WeightDecay::kL2) below = std::fma(step.weight_decay, weights, below);
  if (weights == 0 || below == 0) return step.learning_rate;
  return ((step.learning_rate * step.eta) * weights) / below;
}

}  // namespace shardrec::compute::cpu
