// Where the gradient rows of bags lie, and occurrences of rows that have one each (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// compute::GradientBlock: out[r] = data + stride * (sample[r], or r).
typedef struct shardrec_cuda_gradient_block {
  const float *data;
  int64_t stride;          // floats
  const uint32_t *sample;  // null: r
  int64_t rows;
  const float **out;
} shardrec_cuda_gradient_block;

typedef struct shardrec_cuda_gradient_blocks {
  const shardrec_cuda_gradient_block *blocks;
  shardrec_cuda_tiles tiles;  // of rows
} shardrec_cuda_gradient_blocks;

// compute::SingleOccurrences.
typedef struct shardrec_cuda_single_occurrences {
  int64_t rows;
  int64_t *run;    // [rows + 1]
  uint32_t *bags;  // null: not wanted
  uint32_t *blocks;
} shardrec_cuda_single_occurrences;

#ifdef __cplusplus
}
#endif
