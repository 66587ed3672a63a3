// The part of the optimizers' formulas that is done once per row and range of sums (optimizer.h).
#pragma once

#include <cmath>

#include "compute/math/attributes.h"
#include "compute/optimizer.h"

namespace shardrec::compute::math {

// kRowwiseAdagrad: moves h; k.
SHARDREC_HOST_DEVICE inline float adagrad_rate(const OptimizerStep& step, float& h, float sum,
                                               float columns) noexcept {
  h = h + sum / columns;
  return step.learning_rate / (std::sqrt(h) + step.eps);
}

// Partial row-wise forms: moves v; a.
SHARDREC_HOST_DEVICE inline float partial_scale(const OptimizerStep& step, float& v, float sum,
                                                float columns) noexcept {
  v = std::fma(step.beta2, v, step.one_minus_beta2 * (sum / columns));
  return step.bias1 / (std::sqrt(step.bias2 * v) + step.eps);
}

// LAMB: k of W and R.
SHARDREC_HOST_DEVICE inline float trust_rate(const OptimizerStep& step, float weights,
                                             float directions) noexcept {
  if (weights == 0 || directions <= 0) return step.learning_rate;
  return step.learning_rate * (std::sqrt(weights) / std::sqrt(directions));
}

// kPartialRowwiseLamb: R of a and the sums.
SHARDREC_HOST_DEVICE inline float partial_directions(const OptimizerStep& step, float a,
                                                     const float* sums) noexcept {
  const float undecayed = (a * a) * sums[1];
  if (step.decay_mode != WeightDecay::kDecouple) return undecayed;
  const float decay = step.weight_decay;
  return std::fma(decay * decay, sums[3], std::fma(2 * (a * decay), sums[2], undecayed));
}

// kLarsSgd: a of the sums.
SHARDREC_HOST_DEVICE inline float lars_rate(const OptimizerStep& step, const float* sums) noexcept {
  const float weights = std::sqrt(sums[0]);
  float below = std::sqrt(sums[1]);
  if (step.decay_mode == WeightDecay::kL2) below = std::fma(step.weight_decay, weights, below);
  if (weights == 0 || below == 0) return step.learning_rate;
  return ((step.learning_rate * step.eta) * weights) / below;
}

// max_norm: is a row of the squared norm too long; the factor that brings it to max_norm.
SHARDREC_HOST_DEVICE inline bool is_too_long(float max_norm, float square_norm) noexcept {
  return square_norm > max_norm * max_norm;
}
SHARDREC_HOST_DEVICE inline float norm_factor(float max_norm, float square_norm) noexcept {
  return max_norm / std::sqrt(square_norm);
}

}  // namespace shardrec::compute::math
