// What decides, by the gradients of a stack, how it goes on: with which scale, and whether it takes a step. The rules are
// those of dense/loss_scale.h.
#pragma once

#include "compute/cuda/jobs/scaling.h"
#include "compute/cuda/kernels/device.h"
#include "compute/math/bias_correction.h"
#include "compute/math/loss_scale.h"

namespace shardrec::compute::cuda {

// One thread.
SHARDREC_KERNEL(1) adapt_loss_scale(shardrec_cuda_scaled_backward job) {
  constexpr auto kLargest = static_cast<float>(math::kLargestLossScale);
  if (threadIdx.x != 0) return;
  shardrec_cuda_loss_scale& state = *global(job.loss_scale);
  const bool is_finite = state.not_finite == 0;
  state.not_finite = 0;
  if (job.steps == 0) return;
  if (is_finite && state.finite_backwards + 1 < job.steps) {
    ++state.finite_backwards;
    return;
  }
  state.finite_backwards = 0;
  const float changed = state.scale * (is_finite ? 2.0F : 0.5F);
  state.scale = changed < 1 ? 1 : changed > kLargest ? kLargest : changed;
  state.inverse = 1 / state.scale;
}

// One thread.
SHARDREC_KERNEL(1) open_scaled_step(shardrec_cuda_scaled_step job) {
  if (threadIdx.x != 0) return;
  shardrec_cuda_loss_scale& state = *global(job.loss_scale);
  state.skips = state.not_finite;
  state.not_finite = 0;
  if (state.skips != 0) {
    ++state.skipped_steps;
    return;
  }
  ++state.steps;
  state.bias1 = math::bias_correction(job.beta1, state.steps);
  state.bias2 = math::bias_correction(job.beta2, state.steps);
}

}  // namespace shardrec::compute::cuda
