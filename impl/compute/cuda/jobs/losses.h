// The binary cross-entropy of logits, and samples of predictions for metrics (cuda_plugin.h). Formulas:
// compute/math/logistic.h, compute/math/packed_sample.h.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Samples whose losses are added up first (dense/loss.h).
#define SHARDREC_CUDA_LOSS_BLOCK 256

typedef struct shardrec_cuda_loss {
  const float *logits;
  const float *labels;
  float *probabilities;  // null: not wanted
  float *gradients;      // null: not wanted; of the mean over `count` samples
  double *sums;          // of the losses of each block; null: not wanted
  uint64_t *wrong;  // becomes ~i, if that is more, for each sample i whose label is not in 0 .. 1
  int64_t count;
} shardrec_cuda_loss;

// Of `count` blocks of samples, in the order that dense/loss.h has. total: of the sums.
typedef struct shardrec_cuda_loss_total {
  const double *sums;
  int64_t count;
  double *total;
} shardrec_cuda_loss_total;

// Which number of a sample is wrong.
enum { SHARDREC_CUDA_WRONG_LABEL = 0, SHARDREC_CUDA_WRONG_PROBABILITY = 1 };

typedef struct shardrec_cuda_samples {
  const float *probabilities;
  const float *labels;
  uint32_t *packed;
  // Becomes ~(2 * position + SHARDREC_CUDA_WRONG_...), if that is more, for each sample whose label is neither 0 nor 1,
  // or whose probability is not in 0 .. 1; the label is looked at first.
  uint64_t *wrong;
  int64_t first;  // position of the first sample
  int64_t count;
} shardrec_cuda_samples;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
#define SHARDREC_CUDA_LOSSES_OPERATIONS(OPERATION)               \
  OPERATION(compute_losses, const shardrec_cuda_loss *loss)      \
  OPERATION(total_losses, const shardrec_cuda_loss_total *total) \
  OPERATION(pack_samples, const shardrec_cuda_samples *samples)
#define SHARDREC_CUDA_LOSSES_LOADERS(LOADER) \
  LOADER(load_losses)                        \
  LOADER(load_samples)
