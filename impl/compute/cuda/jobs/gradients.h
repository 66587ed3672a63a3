// Gradients of outputs, packed for the owners of rows (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/column_maps.h"
#include "compute/cuda/jobs/elements.h"
#include "compute/cuda/jobs/presence.h"

#ifdef __cplusplus
extern "C" {
#endif

// compute::BagGradients, of the bags of a block that are not empty; or compute::SequenceGradients, of the
// ids of a sequence that went to some intervals.
typedef struct shardrec_cuda_gradients {
  // Of bags. Of a sequence: chunk_rows only, the ids there before each chunk.
  shardrec_cuda_sent_bags bags;
  int32_t of_sequence;
  const int32_t *intervals;  // null: all 0
  int32_t first_interval;
  int32_t end_interval;
  int64_t items;                  // samples, or ids
  const uint32_t *lengths;        // null: not divided
  const uint32_t *sample_starts;  // as compute::BagSamples
  const uint32_t *samples;
  const void *gradient;  // row r begins at element r * stride
  int64_t stride;
  const shardrec_cuda_column_map *columns;
  int64_t column_count;
  int64_t width;
  float divisor;
  float max_gradient;
  float *out;
  float *unscaled;  // null: not wanted
  int32_t lanes;    // threads that pack a row together
} shardrec_cuda_gradients;

// A chunk of items takes so many blocks of threads.
#define SHARDREC_CUDA_GRADIENT_SLICES 4

#ifdef __cplusplus
}
#endif
