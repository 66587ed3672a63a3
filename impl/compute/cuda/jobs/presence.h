// Which items of a list there are rows of (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/bags.h"

#ifdef __cplusplus
extern "C" {
#endif

// A bit for each item, 64 of them a word: set where there is a row of it. Rows lie in the order of their
// items: the row of an item is number before[word] + the bits below its own.
typedef struct shardrec_cuda_presence {
  const uint64_t *bits;
  const uint32_t *before;
} shardrec_cuda_presence;

// Words that say which samples a block has bags of: of BagSums::present. sample: [bags], ascending.
typedef struct shardrec_cuda_bag_bits {
  const uint32_t *sample;
  int64_t bags;
  uint64_t *bits;
  int64_t words;
} shardrec_cuda_bag_bits;

// What compute::SentBags says of the bags of a block: dense or sparse lengths, and the bags that are not
// empty before each chunk of SHARDREC_CUDA_CHUNK samples.
typedef struct shardrec_cuda_sent_bags {
  const uint32_t *dense_lengths;
  const shardrec_cuda_sparse_length *sparse_lengths;
  const uint32_t *chunk_rows;  // [chunks + 1]
} shardrec_cuda_sent_bags;

// Which bags of a feature any of some blocks holds.
typedef struct shardrec_cuda_held_bags {
  const shardrec_cuda_sent_bags *blocks;  // [count]
  int64_t count;
  int64_t bags;                  // empty ones included
  const uint32_t *chunk_before;  // [chunks + 1]: rows before each chunk; read where bits are wanted
  // Written, as shardrec_cuda_presence: as many words as whole chunks have; null: not wanted.
  uint64_t *bits;
  uint32_t *before;
  uint32_t *chunk_sums;  // as chunk_before, and written; null: not wanted
} shardrec_cuda_held_bags;

// The items that any of some lists of bits has.
typedef struct shardrec_cuda_present_words {
  const uint64_t *const *lists;  // [count]
  int64_t count;
  int64_t words;
  // Written, as shardrec_cuda_presence; null: not wanted.
  uint64_t *bits;
  uint32_t *before;
} shardrec_cuda_present_words;

#ifdef __cplusplus
}
#endif

// The operations, each with what it takes behind its stream.
// - count_present: rows: [count], the items of each union; null: not wanted.
#define SHARDREC_CUDA_PRESENCE_OPERATIONS(OPERATION) \
  OPERATION(count_present, const shardrec_cuda_present_words *unions, int32_t count, int64_t *rows)
