// Blocks of ids as they arrive at the owner of their rows (cuda_plugin.h): lengths of bags that are
// checked, and ids that travelled as codes.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/bags.h"
#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// What the lengths of a block add up to. Zeros before the operation.
typedef struct shardrec_cuda_bag_totals {
  uint64_t ids;
  uint64_t bags;  // not empty; of dense lengths
  uint64_t
      unordered;  // sparse lengths that are 0, beyond the samples, or not behind the one before
} shardrec_cuda_bag_totals;

// tiles: of the lengths of each block.
typedef struct shardrec_cuda_bag_check {
  const shardrec_cuda_bags *blocks;
  shardrec_cuda_tiles tiles;
  shardrec_cuda_bag_totals *totals;  // by block
} shardrec_cuda_bag_check;

// compute::CodedIds.
typedef struct shardrec_cuda_coded_ids {
  const void *codes;
  int32_t code_bytes;  // 1, 2 or 4
  int32_t ids_are_64;
  int64_t count;
  const void *unique_ids;
  int64_t unique;
  void *out;
} shardrec_cuda_coded_ids;

// tiles: of the codes of each block.
typedef struct shardrec_cuda_id_expansion {
  const shardrec_cuda_coded_ids *blocks;
  shardrec_cuda_tiles tiles;
  uint64_t *wrong;  // by block, zeros before: ~i of the first code i that is wrong; 0: none is
} shardrec_cuda_id_expansion;

#ifdef __cplusplus
}
#endif
