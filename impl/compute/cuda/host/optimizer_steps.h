// The settings of an optimizer's step as kernels read them.
#pragma once

#include "compute/cuda/jobs/rows.h"
#include "compute/optimizer.h"

namespace shardrec::compute::cuda::host {

inline shardrec_cuda_optimizer_step on_device(const OptimizerStep& step) {
  return {.decay = static_cast<int32_t>(step.decay_mode),
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

}  // namespace shardrec::compute::cuda::host
