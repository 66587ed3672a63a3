// Gradients of the weights of ids (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/elements.h"
#include "compute/cuda/jobs/presence.h"
#include "compute/cuda/jobs/row_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

// compute::WeightProducts.
typedef struct shardrec_cuda_weight_products {
  const void *table;
  int64_t stride;  // elements from row to row
  int64_t width;   // of gradients
  const void *ids;
  int32_t ids_are_64;
  int64_t id_count;
  const uint32_t *first_id;  // [bags + 1]: ids before each bag that is not empty, and all
  int64_t bags;
  const shardrec_cuda_column_range *ranges;
  int64_t range_count;
  const float *gradients;  // [bags, width]
  float *out;              // [id_count, range_count]
} shardrec_cuda_weight_products;

// Ids that a block of threads multiplies.
#define SHARDREC_CUDA_PRODUCT_IDS 256

// compute::ProductRows, and compute::ProductTerm.
typedef struct shardrec_cuda_product_rows {
  const float *rows;
  int64_t ranges;
  shardrec_cuda_presence presence;  // of the ids that the part got
} shardrec_cuda_product_rows;
typedef struct shardrec_cuda_product_term {
  int32_t part;
  int32_t range;
} shardrec_cuda_product_term;

// compute::WeightGradients.
typedef struct shardrec_cuda_weight_gradients {
  int64_t ids;
  const int32_t *intervals;  // null: all 0
  const shardrec_cuda_product_rows *parts;
  int64_t part_count;
  const shardrec_cuda_product_term *terms;
  const int32_t *first_term;
  const uint8_t *got;  // [intervals, parts]: did the part get the ids of the interval?
  uint64_t *bits;      // room for the bits of the parts' presence: [parts, words]
  float *out;
} shardrec_cuda_weight_gradients;

#ifdef __cplusplus
}
#endif
