// Occurrences of rows in a batch, grouped by row (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// Samples of a block of samples (compute::kBlockSamples).
#define SHARDREC_CUDA_BLOCK_SAMPLES 512

// The ids of one feature from one source: compute::GroupedBlock.
typedef struct shardrec_cuda_grouped_block {
  const void *ids;
  const float *weights;      // null: all 1
  const uint32_t *first_id;  // [bags + 1], as shardrec_cuda_bag_index has them
  const uint32_t *sample;    // [bags]
  int64_t count;             // ids
  int64_t bags;              // not empty
  int32_t ids_are_64;
  int32_t sequence;          // each id is a bag of its own
  int64_t first_sample;      // number of sample 0 among those of all sources
  uint32_t feature_block;    // number of the feature's first block of samples
  uint32_t first_bag;        // bags of the part before
  int64_t first_occurrence;  // occurrences of all parts before
  uint64_t first_key;        // of the part's row 0
  uint32_t *block_of;        // by bag of the part: the block of samples it is in
} shardrec_cuda_grouped_block;

// A part's occurrences, which are side by side in the order of keys.
typedef struct shardrec_cuda_grouped_part {
  int64_t first_occurrence;
  int64_t occurrences;
  uint64_t first_key;
  int64_t *rows;  // room for a row per occurrence: the touched ones, ascending
  int64_t *run;   // one more: where the occurrences of each begin, and their end
} shardrec_cuda_grouped_part;

// All of a batch: occurrences in canonical order, sorted stably by key. Rows of parts have consecutive
// keys, in the order of the parts: keys of 32 bits where key_bits are at most 32, else of 64.
// Of a weighted batch a value is 64 bits, the bag's and above them the weight's, else the bag's 32.
typedef struct shardrec_cuda_row_grouping {
  const shardrec_cuda_grouped_block *blocks;
  const shardrec_cuda_grouped_part *parts;
  shardrec_cuda_tiles block_tiles;  // of ids
  shardrec_cuda_tiles part_tiles;   // of occurrences; a part without one has a tile
  int64_t occurrences;              // of all parts, as all lists below have them
  int32_t key_bits;                 // at least 1
  int32_t weighted;
  void *keys;  // then, in place, as uint32_t: rows before each occurrence
  void *values;
  void *sorted_keys;
  void *sorted_values;  // those of a batch without weights are `bags`
  uint32_t *bags;       // by occurrence, in the order of rows
  float *weights;       // null where the batch has none
  int64_t *row_counts;  // by part
  void *room;           // room_bytes; null: room_bytes is set, and nothing else is done
  uint64_t room_bytes;
} shardrec_cuda_row_grouping;

#ifdef __cplusplus
}
#endif
