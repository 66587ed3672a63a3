// The optimizers' steps on numbers that are no rows of a table (kernels.h: ElementUpdate).
#if defined(SHARDREC_SIMD_ELEMENTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_ELEMENTS_INL
#undef SHARDREC_SIMD_ELEMENTS_INL
#else
#define SHARDREC_SIMD_ELEMENTS_INL
#endif

#include <array>

#include "compute/cpu/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// A job for for_columns().
template <class Step>
struct StepElements {
  const ElementUpdate& job;
  const Constants& k;
  int64_t first;

  template <bool kTail>
  HWY_INLINE void vector(size_t column, const Tail& tail) const {
    const size_t c = static_cast<size_t>(first) + column;
    Vector g = load<kTail>(job.gradients + c, tail);
    if (job.max_gradient > 0) g = clamped(g, hn::Set(kFloats, job.max_gradient));
    Column x{load<kTail>(job.weights + c, tail), g, g, g};
    if constexpr (kNeeds<Step>.matrices > 0) x.m = load<kTail>(job.matrices[0] + c, tail);
    if constexpr (kNeeds<Step>.matrices > 1) x.v = load<kTail>(job.matrices[1] + c, tail);
    Step::step(k, Rates{}, x);
    if constexpr (kNeeds<Step>.matrices > 0) store<kTail>(x.m, job.matrices[0] + c, tail);
    if constexpr (kNeeds<Step>.matrices > 1) store<kTail>(x.v, job.matrices[1] + c, tail);
    store<kTail>(x.w, job.weights + c, tail);
  }
};

template <class Step>
void step_elements(const ElementUpdate& job, int64_t first, int64_t last) noexcept {
  const Constants k(job.step);
  for_columns(StepElements<Step>{job, k, first}, static_cast<size_t>(last - first));
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
  if (first >= last) return;
  const auto decay = static_cast<size_t>(job.step.decay_mode);
  switch (job.step.kind) {
    case OptimizerKind::kSgd:
      return kSgd[decay](job, first, last);
    case OptimizerKind::kAdagrad:
      return kAdagrad[decay](job, first, last);
    case OptimizerKind::kAdam:
      return kAdam[decay](job, first, last);
    default:
      return;
  }
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
