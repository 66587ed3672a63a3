// The bags of blocks, and where each begins (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/scans.h"
#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// compute::SparseLength.
typedef struct shardrec_cuda_sparse_length {
  uint32_t sample;
  uint32_t count;
} shardrec_cuda_sparse_length;

// compute::Bags: dense or sparse lengths. Bags are those that are not empty, unless said otherwise.
typedef struct shardrec_cuda_bags {
  int64_t ids;
  int64_t bags;
  int64_t samples;                                    // bags, empty ones included
  const uint32_t *dense_lengths;                      // [samples]
  const shardrec_cuda_sparse_length *sparse_lengths;  // [bags]
} shardrec_cuda_bags;

// A block whose bags are counted through, in place of walking them: written are, where wanted, the first
// id and the sample of each bag. The lengths are those of a block that was checked; for a block that has
// none, nothing is written.
typedef struct shardrec_cuda_bag_index {
  shardrec_cuda_bags bags;
  uint32_t *first_id;  // [bags + 1]: ids before each, and all
  uint32_t *sample;    // [bags]; null: not wanted
} shardrec_cuda_bag_index;

// tiles: of the lengths of each block.
typedef struct shardrec_cuda_bag_indexing {
  const shardrec_cuda_bag_index *blocks;
  shardrec_cuda_tiles tiles;
  shardrec_cuda_scan scan;
} shardrec_cuda_bag_indexing;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream; and the functions that load their kernels.
#define SHARDREC_CUDA_BAGS_OPERATIONS(OPERATION) \
  OPERATION(index_bags, const shardrec_cuda_bag_indexing *indexing)
#define SHARDREC_CUDA_BAGS_LOADERS(LOADER) LOADER(load_bag_index)
