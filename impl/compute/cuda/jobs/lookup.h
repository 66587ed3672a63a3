// Outputs looked up in rows of tables (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/elements.h"

#ifdef __cplusplus
extern "C" {
#endif

// Outputs of some columns of a feature, looked up in rows of a table: compute::BagOutputs. Or the sums of
// the bags of a block (compute::BagSums), the items of which are bags that are not empty. All addresses
// are of the device.
typedef struct shardrec_cuda_lookup {
  const void *table;
  int64_t stride;  // elements from row to row
  int64_t width;   // columns
  const void *ids;
  const float *weights;       // null: all 1
  const uint32_t *lengths;    // [items], null: an id per item
  const uint32_t *chunk_ids;  // [chunks + 1]: ids before each chunk of SHARDREC_CUDA_CHUNK items
  // In place of both: [items + 1], the ids before each item, and all. Where there is none of the three,
  // an item is an id.
  const uint32_t *first_id;
  int64_t items;
  void *out;
  int64_t out_stride;  // elements
  int32_t out_element;
  // May a thread store all that it has of an output (the columns in 16 bytes of a row of the table) by
  // stores of 16 bytes, or by one that is shorter?
  int32_t out_vectors;
  int32_t ids_are_64;
  int32_t mean;
  // Threads that read a row together, 4, 8, 16 or 32. A block of threads looks up
  // SHARDREC_CUDA_LOOKUP_ITEMS / lanes items, the last one of a lookup those that are left.
  int32_t lanes;
  int32_t reserved;      // 0
  const uint32_t *good;  // 0 there: nothing is looked up; null: it is
} shardrec_cuda_lookup;

#define SHARDREC_CUDA_LOOKUP_ITEMS 2048
#define SHARDREC_CUDA_LEAST_LANES 4

// Which kernel looks them up. Lookups of one kind are one launch.
typedef struct shardrec_cuda_lookup_kind {
  int32_t element;  // of the tables
  // Are the address, the stride and the width of all rows multiples of 16 bytes?
  int32_t vectors;
  // Are they, and all outputs sums in fp32 at such addresses and strides?
  int32_t plain;
} shardrec_cuda_lookup_kind;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
// - look_up: first_block: [count + 1], the blocks of the lookups before each; blocks: of all.
#define SHARDREC_CUDA_LOOKUP_OPERATIONS(OPERATION)                                               \
  OPERATION(look_up, const shardrec_cuda_lookup_kind *kind, const shardrec_cuda_lookup *lookups, \
            const int64_t *first_block, int32_t count, int64_t blocks)
#define SHARDREC_CUDA_LOOKUP_LOADERS(LOADER) LOADER(load_lookups)
