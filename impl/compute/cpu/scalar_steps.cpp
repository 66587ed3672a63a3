#include "compute/cpu/scalar_steps.h"

#include <array>
#include <cmath>

#include "compute/cpu/rates.h"
#include "compute/cpu/scalar_rows.h"
#include "compute/cpu/sets.h"

namespace shardrec::compute::cpu::scalar {
namespace {

// 16-lane sum of x(c) * y(c).
template <class X, class Y>
float sum_of_products(int64_t columns, const X& x, const Y& y) noexcept {
  std::array<float, kLanes> lanes{};
  for (int64_t c = 0; c < columns; ++c) {
    float& lane = lanes[static_cast<size_t>(c % kLanes)];
    lane = std::fma(x(c), y(c), lane);
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// e: with L2 decay the gradient of the penalised loss.
float penalised(const RangeOfRow& r, int64_t c) noexcept {
  return r.step.decay_mode == WeightDecay::kL2 ? std::fma(r.step.weight_decay, r.w[c], r.g[c])
                                               : r.g[c];
}

// d of x, for decoupled decay inside the direction.
float decayed(const RangeOfRow& r, int64_t c, float x) noexcept {
  return r.step.decay_mode == WeightDecay::kDecouple ? std::fma(r.step.weight_decay, r.w[c], x) : x;
}

// w with decoupled decay, for the others.
float shrunk(const RangeOfRow& r, int64_t c) noexcept {
  return r.step.decay_mode == WeightDecay::kDecouple
             ? (1.0F - r.step.learning_rate * r.step.weight_decay) * r.w[c]
             : r.w[c];
}

float first_moment(const RangeOfRow& r, int64_t c) noexcept {
  return std::fma(r.step.beta1, r.m[c], r.step.one_minus_beta1 * penalised(r, c));
}

float second_moment(const RangeOfRow& r, int64_t c) noexcept {
  const float e = penalised(r, c);
  return std::fma(r.step.beta2, r.v[c], r.step.one_minus_beta2 * (e * e));
}

// d of Adam and LAMB, of the moved moments.
float direction(const RangeOfRow& r, int64_t c, float m, float v) noexcept {
  const float x = (r.step.bias1 * m) / (std::sqrt(r.step.bias2 * v) + r.step.eps);
  return decayed(r, c, x);
}

void step_sgd(const RangeOfRow& r, const float*, float) noexcept {
  for (int64_t c = 0; c < r.columns; ++c) {
    r.w[c] = std::fma(-r.step.learning_rate, penalised(r, c), shrunk(r, c));
  }
}

void step_adagrad(const RangeOfRow& r, const float*, float) noexcept {
  for (int64_t c = 0; c < r.columns; ++c) {
    const float e = penalised(r, c);
    r.m[c] = std::fma(e, e, r.m[c]);
    const float quotient = e / (std::sqrt(r.m[c]) + r.step.eps);
    r.w[c] = std::fma(-r.step.learning_rate, quotient, shrunk(r, c));
  }
}

void sums_of_rowwise_adagrad(const RangeOfRow& r, float* out) noexcept {
  const auto e = [&](int64_t c) { return penalised(r, c); };
  out[0] = sum_of_products(r.columns, e, e);
}

void step_rowwise_adagrad(const RangeOfRow& r, const float* sums, float sum_columns) noexcept {
  const float rate = adagrad_rate(r.step, *r.state, sums[0], sum_columns);
  for (int64_t c = 0; c < r.columns; ++c) {
    const float kept = r.step.decay_mode == WeightDecay::kL2
                           ? (1.0F - rate * r.step.weight_decay) * r.w[c]
                           : shrunk(r, c);
    r.w[c] = std::fma(-rate, r.g[c], kept);
  }
}

void move_moments(const RangeOfRow& r, int64_t c) noexcept {
  r.m[c] = first_moment(r, c);
  r.v[c] = second_moment(r, c);
}

void step_adam(const RangeOfRow& r, const float*, float) noexcept {
  for (int64_t c = 0; c < r.columns; ++c) {
    move_moments(r, c);
    r.w[c] = std::fma(-r.step.learning_rate, direction(r, c, r.m[c], r.v[c]), r.w[c]);
  }
}

void sums_of_partial_adam(const RangeOfRow& r, float* out) noexcept {
  out[0] = square_sum(r.g, r.columns);
}

void step_by_partial_moments(const RangeOfRow& r, float a, float rate) noexcept {
  for (int64_t c = 0; c < r.columns; ++c) {
    r.m[c] = first_moment(r, c);
    r.w[c] = std::fma(-rate, decayed(r, c, a * r.m[c]), r.w[c]);
  }
}

void step_partial_adam(const RangeOfRow& r, const float* sums, float sum_columns) noexcept {
  const float a = partial_scale(r.step, *r.state, sums[0], sum_columns);
  step_by_partial_moments(r, a, r.step.learning_rate);
}

void sums_of_lamb(const RangeOfRow& r, float* out) noexcept {
  const auto d = [&](int64_t c) {
    return direction(r, c, first_moment(r, c), second_moment(r, c));
  };
  out[0] = square_sum(r.w, r.columns);
  out[1] = sum_of_products(r.columns, d, d);
}

void step_lamb(const RangeOfRow& r, const float* sums, float) noexcept {
  const float rate = trust_rate(r.step, sums[0], sums[1]);
  for (int64_t c = 0; c < r.columns; ++c) {
    move_moments(r, c);
    r.w[c] = std::fma(-rate, direction(r, c, r.m[c], r.v[c]), r.w[c]);
  }
}

void sums_of_partial_lamb(const RangeOfRow& r, float* out) noexcept {
  const auto m = [&](int64_t c) { return first_moment(r, c); };
  out[0] = square_sum(r.g, r.columns);
  out[1] = sum_of_products(r.columns, m, m);
  out[2] = sum_of_products(r.columns, m, [&](int64_t c) { return r.w[c]; });
  out[3] = square_sum(r.w, r.columns);
}

void step_partial_lamb(const RangeOfRow& r, const float* sums, float sum_columns) noexcept {
  const float a = partial_scale(r.step, *r.state, sums[0], sum_columns);
  step_by_partial_moments(r, a, trust_rate(r.step, sums[3], partial_directions(r.step, a, sums)));
}

void sums_of_lars(const RangeOfRow& r, float* out) noexcept {
  out[0] = square_sum(r.w, r.columns);
  out[1] = square_sum(r.g, r.columns);
}

void step_lars(const RangeOfRow& r, const float* sums, float) noexcept {
  const float rate = lars_rate(r.step, sums);
  for (int64_t c = 0; c < r.columns; ++c) {
    r.m[c] = std::fma(r.step.momentum, r.m[c], rate * penalised(r, c));
    r.w[c] = r.w[c] - r.m[c];
  }
}

}  // namespace

float dot(const void* row, Element element, const float* y, int64_t columns) noexcept {
  return sum_of_products(
      columns, [&](int64_t c) { return element_at(row, element, static_cast<size_t>(c)); },
      [&](int64_t c) { return y[c]; });
}

void element_update(const ElementUpdate& job, int64_t first, int64_t last) noexcept {
  if (state_needs(job.step.kind).sums != 0) return;
  const Optimizer& with = optimizer(job.step.kind);
  for (int64_t i = first; i < last; ++i) {
    float g = job.gradients[i];
    if (job.max_gradient > 0 && g > job.max_gradient) g = job.max_gradient;
    if (job.max_gradient > 0 && g < -job.max_gradient) g = -job.max_gradient;
    const auto at = [&](float* matrix) { return matrix == nullptr ? nullptr : matrix + i; };
    with.step({.step = job.step,
               .columns = 1,
               .w = job.weights + i,
               .g = &g,
               .m = at(job.matrices[0]),
               .v = at(job.matrices[1])},
              nullptr, 0);
  }
}

float square_sum(const float* x, int64_t columns) noexcept {
  const auto at = [&](int64_t c) { return x[c]; };
  return sum_of_products(columns, at, at);
}

const Optimizer& optimizer(OptimizerKind kind) noexcept {
  static constexpr std::array<Optimizer, kOptimizerKinds> kOptimizers = {{
      {nullptr, step_sgd},
      {nullptr, step_adagrad},
      {sums_of_rowwise_adagrad, step_rowwise_adagrad},
      {nullptr, step_adam},
      {sums_of_partial_adam, step_partial_adam},
      {sums_of_lamb, step_lamb},
      {sums_of_partial_lamb, step_partial_lamb},
      {sums_of_lars, step_lars},
  }};
  return kOptimizers[static_cast<size_t>(kind)];
}

}  // namespace shardrec::compute::cpu::scalar
