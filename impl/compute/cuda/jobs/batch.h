// The caller's batch, checked (cuda_plugin.h): lengths of bags, and which samples each bag is for.
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// compute::BagLengths, the integers from its first one on.
typedef struct shardrec_cuda_bag_lengths {
  const void *given;  // [bags], of offsets one more
  int32_t given_64;
  int32_t are_offsets;
  int64_t bags;
  int64_t most;
  uint32_t *out;  // [bags]
} shardrec_cuda_bag_lengths;

// What was found in a list. Zeros before the operation.
typedef struct shardrec_cuda_checked_list {
  uint64_t wrong;  // ~i of the first item i that is wrong; 0: none is
  uint64_t sum;    // of the items, those aside that are wrong; of offsets, the last one
} shardrec_cuda_checked_list;

// tiles: of the bags of each feature, one at least.
typedef struct shardrec_cuda_length_reading {
  const shardrec_cuda_bag_lengths *features;
  shardrec_cuda_tiles tiles;
  shardrec_cuda_checked_list *checked;  // by feature
} shardrec_cuda_length_reading;

// compute::SamplesByBag, the numbers of bags from its first one on. Its samples are numbers
// [first_sample, first_sample + count) among those of all features of the call, its bags are those from
// first_bag on.
typedef struct shardrec_cuda_samples_by_bag {
  const void *bag_of;  // [count]
  int32_t bag_of_64;
  int64_t count;
  int64_t bags;
  int64_t first_sample;
  uint64_t first_bag;
  uint32_t *starts;   // [bags + 1]
  uint32_t *samples;  // [count]
} shardrec_cuda_samples_by_bag;

typedef struct shardrec_cuda_sample_sorting {
  const shardrec_cuda_samples_by_bag *features;
  shardrec_cuda_tiles sample_tiles;     // of the samples of each feature
  shardrec_cuda_tiles list_tiles;       // of the samples or the starts, whichever are more
  shardrec_cuda_checked_list *checked;  // by feature; without sums
  int64_t samples;                      // of all features
  int32_t key_bits;                     // that all bags are told apart by
  uint64_t *keys, *sorted_keys;         // [samples]
  uint32_t *values, *sorted_values;     // [samples]
  void *room;  // room_bytes; null: room_bytes is set, and nothing else is done
  uint64_t room_bytes;
} shardrec_cuda_sample_sorting;

#ifdef __cplusplus
}
#endif
