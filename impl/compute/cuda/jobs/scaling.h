// The scale of gradients between layers in float16, and the steps that are skipped (cuda_plugin.h). Rules:
// dense/loss_scale.h.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/layers.h"

#ifdef __cplusplus
extern "C" {
#endif

// A stack's scale of gradients and its steps (dense/loss_scale.h), in memory of the device: kernels read and write it, so
// that the host need not know it.
typedef struct shardrec_cuda_loss_scale {
  float scale;
  float inverse;  // 1 / scale
  int64_t finite_backwards;
  int64_t steps;  // that were taken
  int64_t skipped_steps;
  uint32_t not_finite;  // a number is not, of those that were looked at since it became 0
  uint32_t
      skips;  // the step that has begun is skipped; else the bias corrections of Adam's moments for it
  float bias1;
  float bias2;
} shardrec_cuda_loss_scale;

// y = x / scale, or y += x / scale; y may be x. Tells of what is not finite in x / scale.
typedef struct shardrec_cuda_unscaling {
  shardrec_cuda_matrix x;
  shardrec_cuda_matrix y;
  int32_t accumulate;
  int32_t reserved;  // 0
  shardrec_cuda_loss_scale *loss_scale;
} shardrec_cuda_unscaling;

// Tells of what is not finite among `count` floats.
typedef struct shardrec_cuda_inspection {
  const float *numbers;
  int64_t count;
  shardrec_cuda_loss_scale *loss_scale;
} shardrec_cuda_inspection;

// By what was told since the last of the two jobs below: dense::LossScale::end_backward(), whose steps these are.
typedef struct shardrec_cuda_scaled_backward {
  shardrec_cuda_loss_scale *loss_scale;
  int64_t steps;
} shardrec_cuda_scaled_backward;

// And whether a step is skipped, which is counted, or taken: its bias corrections, 1 for a beta of 0.
typedef struct shardrec_cuda_scaled_step {
  shardrec_cuda_loss_scale *loss_scale;
  double beta1;
  double beta2;
} shardrec_cuda_scaled_step;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
#define SHARDREC_CUDA_SCALING_OPERATIONS(OPERATION)                             \
  OPERATION(unscale_matrix, const shardrec_cuda_unscaling *unscaling)           \
  OPERATION(inspect_numbers, const shardrec_cuda_inspection *inspection)        \
  OPERATION(end_scaled_backward, const shardrec_cuda_scaled_backward *backward) \
  OPERATION(begin_scaled_step, const shardrec_cuda_scaled_step *step)
#define SHARDREC_CUDA_SCALING_LOADERS(LOADER) LOADER(load_loss_scale)
