#include "compute/cpu/kernels/scalar_steps.h"

#include <array>

#include "compute/cpu/kernels/scalar_rows.h"
#include "compute/cpu/kernels/scalar_sums.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::cpu::scalar {
namespace {

using math::kMovesFirst;
using math::kNeeds;

template <class Step>
math::Column column_at(const RangeOfRow& range, int64_t c) noexcept {
  math::Column x{range.w[c], range.g[c], 0, 0};
  if constexpr (kNeeds<Step>.matrices > 0) x.m = range.m[c];
  if constexpr (kNeeds<Step>.matrices > 1) x.v = range.v[c];
  return x;
}

template <class Step>
void sums_of(const RangeOfRow& range, float* out) noexcept {
  const math::Constants k(range.step);
  sum_columns<static_cast<size_t>(kNeeds<Step>.sums)>(range.columns, out,
                                                      [&](int64_t c, float* sums) {
                                                        math::Column x = column_at<Step>(range, c);
                                                        if constexpr (kMovesFirst<Step>)
                                                          Step::move(k, x);
                                                        Step::sum(k, x, sums);
                                                      });
}

template <class Step>
void step_of(const RangeOfRow& range, [[maybe_unused]] const float* sums,
             [[maybe_unused]] float sum_columns) noexcept {
  const math::Constants k(range.step);
  math::Rates rates;
  if constexpr (kNeeds<Step>.sums > 0) {
    rates = Step::rates(range.step, range.state, sums, sum_columns);
  }
  for (int64_t c = 0; c < range.columns; ++c) {
    math::Column x = column_at<Step>(range, c);
    if constexpr (kMovesFirst<Step>) Step::move(k, x);
    Step::step(k, rates, x);
    if constexpr (kNeeds<Step>.matrices > 0) range.m[c] = x.m;
    if constexpr (kNeeds<Step>.matrices > 1) range.v[c] = x.v;
    range.w[c] = x.w;
  }
}

template <class Step>
constexpr Optimizer optimizer_of() {
  Optimizer optimizer{.sums = nullptr, .step = step_of<Step>};
  if constexpr (kNeeds<Step>.sums > 0) optimizer.sums = sums_of<Step>;
  return optimizer;
}

using OfDecays = std::array<Optimizer, 3>;

template <template <WeightDecay> class Step>
constexpr OfDecays of_decays() {
  return {optimizer_of<Step<WeightDecay::kNone>>(), optimizer_of<Step<WeightDecay::kL2>>(),
          optimizer_of<Step<WeightDecay::kDecouple>>()};
}

float gradient_at(const ElementUpdate& job, int64_t i) noexcept {
  const float g = job.gradients[i];
  return job.max_gradient > 0 ? math::clamped(g, job.max_gradient) : g;
}

template <class Step>
void lamb_sums(const ElementUpdate& job, int64_t first, int64_t last, float* out) noexcept {
  const math::Constants k(job.step);
  sum_columns<2>(last - first, out, [&](int64_t c, float* sums) {
    const int64_t i = first + c;
    float& m = job.matrices[0][i];
    float& v = job.matrices[1][i];
    math::Column x{job.weights[i], gradient_at(job, i), m, v};
    Step::move(k, x);
    Step::sum(k, x, sums);
    m = x.m;
    v = x.v;
  });
}

template <class Step>
void lamb_step(const ElementUpdate& job, int64_t first, int64_t last) noexcept {
  const math::Constants k(job.step);
  const math::Rates rates = Step::rates(job.step, nullptr, job.sums, 0);
  for (int64_t i = first; i < last; ++i) {
    math::Column x{job.weights[i], 0, job.matrices[0][i], job.matrices[1][i]};
    x.g = Step::direction(k, x);
    Step::step(k, rates, x);
    job.weights[i] = x.w;
  }
}

}  // namespace

const Optimizer& optimizer(const OptimizerStep& step) noexcept {
#define SHARDREC_OF_DECAYS(Step) of_decays<math::Step>(),
  static constexpr std::array kOptimizers = {SHARDREC_ROW_OPTIMIZERS(SHARDREC_OF_DECAYS)
                                                 of_decays<math::MomentumSgd>()};
#undef SHARDREC_OF_DECAYS
  static_assert(kOptimizers.size() == kOptimizerKinds);
  return kOptimizers[static_cast<size_t>(step.kind)][static_cast<size_t>(step.decay_mode)];
}

void element_update(const ElementUpdate& job, int64_t first, int64_t last) noexcept {
  if (job.step.kind == OptimizerKind::kLamb) {
    static constexpr std::array kSteps = {lamb_step<math::Lamb<WeightDecay::kNone>>,
                                          lamb_step<math::Lamb<WeightDecay::kL2>>,
                                          lamb_step<math::Lamb<WeightDecay::kDecouple>>};
    return kSteps[static_cast<size_t>(job.step.decay_mode)](job, first, last);
  }
  if (state_needs(job.step.kind).sums != 0) return;
  const Optimizer& with = optimizer(job.step);
  for (int64_t i = first; i < last; ++i) {
    const float g = gradient_at(job, i);
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

void element_sums(const ElementUpdate& job, int64_t first, int64_t last, float* out) noexcept {
  static constexpr std::array kSums = {lamb_sums<math::Lamb<WeightDecay::kNone>>,
                                       lamb_sums<math::Lamb<WeightDecay::kL2>>,
                                       lamb_sums<math::Lamb<WeightDecay::kDecouple>>};
  if (job.step.kind != OptimizerKind::kLamb) return;
  kSums[static_cast<size_t>(job.step.decay_mode)](job, first, last, out);
}

float dot(const void* row, Element element, const float* y, int64_t columns) noexcept {
  float sum = 0;
  sum_columns<1>(columns, &sum, [&](int64_t c, float* sums) {
    *sums = math::op::fma(element_at(row, element, static_cast<size_t>(c)), y[c], *sums);
  });
  return sum;
}

float square_sum(const float* x, int64_t columns) noexcept {
  float sum = 0;
  sum_columns<1>(columns, &sum, [&](int64_t c, float* sums) { math::add_square(x[c], *sums); });
  return sum;
}

}  // namespace shardrec::compute::cpu::scalar
