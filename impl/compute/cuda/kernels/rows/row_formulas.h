// The optimizers' formulas (math/optimizers-inl.h) with the settings of a job.
#pragma once

#include "compute/cuda/jobs/rows.h"
#include "compute/cuda/kernels/device.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE OptimizerStep step_of(OptimizerKind kind, WeightDecay decay,
                                      const shardrec_cuda_optimizer_step& step) {
  return {.kind = kind,
          .decay_mode = decay,
          .learning_rate = step.learning_rate,
          .eps = step.eps,
          .weight_decay = step.weight_decay,
          .beta1 = step.beta1,
          .beta2 = step.beta2,
          .one_minus_beta1 = step.one_minus_beta1,
          .one_minus_beta2 = step.one_minus_beta2,
          .bias1 = step.bias1,
          .bias2 = step.bias2,
          .momentum = step.momentum,
          .eta = step.eta,
          .max_norm = step.max_norm};
}

// Lists of numbers that the sums of an optimizer read: what a single sum is of, or gradients, weights, and
// the first matrix.
constexpr int summed_lists(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kPartialRowwiseLamb:
      return 3;
    case OptimizerKind::kLamb:
    case OptimizerKind::kLarsSgd:
      return 2;
    default:
      return 1;
  }
}

// The formulas of an optimizer, with the decay of a job.
template <template <WeightDecay> class OfDecay>
struct Formulas {
  static constexpr OptimizerKind kKind = OfDecay<WeightDecay::kNone>::kKind;
  static constexpr StateNeeds kNeeds = state_needs(kKind);

  // Adds to several sums, which do not depend on decays.
  SHARDREC_DEVICE static void add(const math::Column& x, float* sums) {
    OfDecay<WeightDecay::kNone>::sum(math::Constants(OptimizerStep{}), x, sums);
  }

  // Calls body(formula, settings).
  template <class Body>
  SHARDREC_DEVICE static void visit(const shardrec_cuda_optimizer_step& step, const Body& body) {
    switch (static_cast<WeightDecay>(step.decay)) {
      case WeightDecay::kNone:
        return call<WeightDecay::kNone>(step, body);
      case WeightDecay::kL2:
        return call<WeightDecay::kL2>(step, body);
      case WeightDecay::kDecouple:
        return call<WeightDecay::kDecouple>(step, body);
    }
  }

 private:
  template <WeightDecay kDecay, class Body>
  SHARDREC_DEVICE static void call(const shardrec_cuda_optimizer_step& step, const Body& body) {
    if constexpr (accepts(kKind, kDecay)) body(OfDecay<kDecay>{}, step_of(kKind, kDecay, step));
  }
};

}  // namespace shardrec::compute::cuda
