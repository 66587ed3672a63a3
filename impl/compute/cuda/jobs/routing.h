// Ids of a batch on their way to the owners of their rows (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/bags.h"
#include "compute/cuda/jobs/batch.h"
#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// A warp walks so many neighbouring bags of a feature, a strip, the last one those that are left. A chunk
// begins with a strip.
#define SHARDREC_CUDA_STRIP 64
// Features of more blocks keep the places of a warp in memory that is not shared.
#define SHARDREC_CUDA_MOST_SHARED_PLACES 128

// What becomes of ids outside their table: shardrec_out_of_range.
enum { SHARDREC_CUDA_REFUSE = 0, SHARDREC_CUDA_DROP = 1, SHARDREC_CUDA_CLAMP = 2 };

// compute::BlockSections, and the first row of the block's range.
typedef struct shardrec_cuda_written_block {
  int64_t row;
  uint32_t *dense_lengths;
  shardrec_cuda_sparse_length *sparse_lengths;
  void *ids;
  float *weights;
  uint32_t *chunk_rows;
  uint32_t *chunk_ids;
} shardrec_cuda_written_block;

// What a warp has counted, or written, of a block.
typedef struct shardrec_cuda_block_place {
  uint32_t ids;
  uint32_t bags;         // not empty
  uint32_t last_sample;  // of the last bag
} shardrec_cuda_block_place;

// compute::RoutedIds, the ids and weights from the feature's first one on. Sums are of ids, and, above
// 2^32, of bags that are not empty. One over several features may wrap: its differences do not.
typedef struct shardrec_cuda_routed_ids {
  const void *ids;          // [count]
  const float *weights;     // [count]
  const uint32_t *lengths;  // [bags]
  int64_t count;
  int64_t bags;
  int64_t rows;
  int32_t ids_are_64;
  int32_t writes_64;
  int32_t policy;
  int32_t sequence;
  uint32_t *kept_lengths;
  int32_t *interval_of;
  // compute::RowIntervals. No intervals: every block holds all ids.
  int32_t intervals;
  int32_t columns;
  const int64_t *cuts;
  int64_t even;
  uint64_t reciprocal;
  // [columns][intervals]: numbers of blocks of the feature that the ids of an interval go to, or -1. No
  // block is in two columns.
  const int32_t *interval_blocks;
  int32_t block_count;
  const shardrec_cuda_written_block *blocks;  // [block_count]; only read where they are written
  int64_t strips;                             // at least one
  uint64_t *strip_sums;                       // [strips + 1]: of the strips before each
  uint64_t *block_sums;  // [block_count][strips] + 1: of intervals, in each block and strip
  shardrec_cuda_block_place *places;  // [strips][block_count]; null: in shared memory
} shardrec_cuda_routed_ids;

// The ids and the bags of a block are what lies between two sums.
typedef struct shardrec_cuda_block_total {
  const uint64_t *begin;  // null: nothing
  const uint64_t *end;
} shardrec_cuda_block_total;

typedef struct shardrec_cuda_id_routing {
  const shardrec_cuda_routed_ids *features;
  int32_t feature_count;
  int32_t cut_features;        // those with intervals
  const int64_t *first_strip;  // [feature_count + 1]: strips of the features before
  int64_t strips;              // of all features
  shardrec_cuda_tiles tiles;   // of the ids of each feature without intervals
  uint64_t *strip_sums;        // [strips + 1]: of all features
  uint64_t *block_sums;        // [block_sum_count + 1]: of all features
  int64_t block_sum_count;
  // Counted: by feature, zeros before, with the ids out of range as a sum; by block.
  shardrec_cuda_checked_list *checked;
  const shardrec_cuda_block_total *totals;
  uint64_t *counts;
  int64_t block_count;
  void *room;  // room_bytes; null: room_bytes is set, and nothing else is done
  uint64_t room_bytes;
} shardrec_cuda_id_routing;

#ifdef __cplusplus
}
#endif
