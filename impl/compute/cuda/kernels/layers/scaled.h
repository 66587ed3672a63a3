// Gradients that carry a loss scale: they are divided by it, and it is told of those that are not finite.
#pragma once

#include "compute/cuda/jobs/scaling.h"
#include "compute/cuda/kernels/device.h"
#include "compute/math/finite.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE void tell_if_not_finite(shardrec_cuda_loss_scale* loss_scale, float x) {
  if (math::is_finite(x)) return;
  atomicOr(&global(loss_scale)->not_finite, 1U);
}

// x / scale.
SHARDREC_DEVICE float unscaled(shardrec_cuda_loss_scale* loss_scale, float x) {
  const float result = x * global(loss_scale)->inverse;
  tell_if_not_finite(loss_scale, result);
  return result;
}

}  // namespace shardrec::compute::cuda
