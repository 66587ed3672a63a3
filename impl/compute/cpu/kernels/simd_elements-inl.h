// The optimizers' steps on numbers that are no rows of a table (kernels.h: ElementUpdate).
#if defined(SHARDREC_SIMD_ELEMENTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_ELEMENTS_INL
#undef SHARDREC_SIMD_ELEMENTS_INL
#else
#define SHARDREC_SIMD_ELEMENTS_INL
#endif

#include <array>

#include "compute/cpu/kernels/simd_math-inl.h"
#include "compute/cpu/kernels/simd_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

template <class Step, bool kTail>
HWY_INLINE Column element_at(const ElementUpdate& job, size_t c, const Tail& tail) {
  Vector g = load<kTail>(job.gradients + c, tail);
  if (job.max_gradient > 0) g = clamped(g, hn::Set(kFloats, job.max_gradient));
  Column x{load<kTail>(job.weights + c, tail), g, g, g};
  if constexpr (kNeeds<Step>.matrices > 0) x.m = load<kTail>(job.matrices[0] + c, tail);
  if constexpr (kNeeds<Step>.matrices > 1) x.v = load<kTail>(job.matrices[1] + c, tail);
  return x;
}

template <class Step, bool kTail>
HWY_INLINE void store_moments(const ElementUpdate& job, size_t c, const Tail& tail,
                              const Column& x) {
  if constexpr (kNeeds<Step>.matrices > 0) store<kTail>(x.m, job.matrices[0] + c, tail);
  if constexpr (kNeeds<Step>.matrices > 1) store<kTail>(x.v, job.matrices[1] + c, tail);
}

// A job for for_columns().
template <class Step>
struct StepElements {
  const ElementUpdate& job;
  const Constants& k;
  int64_t first;

  template <bool kTail>
  HWY_INLINE void vector(size_t column, const Tail& tail) const {
    const size_t c = static_cast<size_t>(first) + column;
    Column x = element_at<Step, kTail>(job, c, tail);
    Step::step(k, Rates{}, x);
    store_moments<Step, kTail>(job, c, tail, x);
    store<kTail>(x.w, job.weights + c, tail);
  }
};

// The two passes of LAMB: a job for sum_columns(), and one for for_columns().
template <class Step>
struct LambSums {
  static constexpr size_t kSums = 2;
  const ElementUpdate& job;
  const Constants& k;
  int64_t first;

  template <bool kTail>
  HWY_INLINE void vector(size_t column, const Tail& tail, Vector* sums) const {
    const size_t c = static_cast<size_t>(first) + column;
    Column x = element_at<Step, kTail>(job, c, tail);
    Step::move(k, x);
    if constexpr (kTail) x.g = tail.only(x.g);  // eps may be 0
    Step::sum(k, x, sums);
    store_moments<Step, kTail>(job, c, tail, x);
  }
};

template <class Step>
struct LambStep {
  const ElementUpdate& job;
  const Constants& k;
  const Rates& rates;
  int64_t first;

  template <bool kTail>
  HWY_INLINE void vector(size_t column, const Tail& tail) const {
    const size_t c = static_cast<size_t>(first) + column;
    const Vector w = load<kTail>(job.weights + c, tail);
    Column x{w, w, load<kTail>(job.matrices[0] + c, tail), load<kTail>(job.matrices[1] + c, tail)};
    x.g = Step::direction(k, x);
    Step::step(k, rates, x);
    store<kTail>(x.w, job.weights + c, tail);
  }
};

template <class Step>
void step_elements(const ElementUpdate& job, int64_t first, int64_t last) noexcept {
  const Constants k(job.step);
  const auto elements = static_cast<size_t>(last - first);
  if constexpr (Step::kKind == OptimizerKind::kLamb) {
    const Rates rates = Step::rates(job.step, nullptr, job.sums, 0);
    for_columns(LambStep<Step>{job, k, rates, first}, elements);
  } else {
    for_columns(StepElements<Step>{job, k, first}, elements);
  }
}

template <class Step>
void sum_elements(const ElementUpdate& job, int64_t first, int64_t last, float* out) noexcept {
  const Constants k(job.step);
  sum_columns(LambSums<Step>{job, k, first}, static_cast<size_t>(last - first), out);
}

using ElementKernel = void (*)(const ElementUpdate& job, int64_t first, int64_t last) noexcept;

template <template <WeightDecay> class Step>
constexpr std::array<ElementKernel, 3> element_kernels() {
  return {step_elements<Step<WeightDecay::kNone>>, step_elements<Step<WeightDecay::kL2>>,
          step_elements<Step<WeightDecay::kDecouple>>};
}

inline void element_update(const ElementUpdate& job, int64_t first, int64_t last) noexcept {
  static constexpr auto kSgd = element_kernels<Sgd>();
  static constexpr auto kAdagrad = element_kernels<Adagrad>();
  static constexpr auto kAdam = element_kernels<Adam>();
  static constexpr auto kLamb = element_kernels<Lamb>();
  static constexpr auto kMomentumSgd = element_kernels<MomentumSgd>();
  if (first >= last) return;
  const auto decay = static_cast<size_t>(job.step.decay_mode);
  switch (job.step.kind) {
    case OptimizerKind::kSgd:
      return kSgd[decay](job, first, last);
    case OptimizerKind::kAdagrad:
      return kAdagrad[decay](job, first, last);
    case OptimizerKind::kAdam:
      return kAdam[decay](job, first, last);
    case OptimizerKind::kLamb:
      return kLamb[decay](job, first, last);
    case OptimizerKind::kMomentumSgd:
      return kMomentumSgd[decay](job, first, last);
    default:
      return;
  }
}

inline void element_sums(const ElementUpdate& job, int64_t first, int64_t last,
                         float* out) noexcept {
  static constexpr std::array kSums = {sum_elements<Lamb<WeightDecay::kNone>>,
                                       sum_elements<Lamb<WeightDecay::kL2>>,
                                       sum_elements<Lamb<WeightDecay::kDecouple>>};
  if (job.step.kind != OptimizerKind::kLamb) return;
  kSums[static_cast<size_t>(job.step.decay_mode)](job, first, last, out);
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
