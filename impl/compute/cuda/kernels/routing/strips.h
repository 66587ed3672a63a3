// The part of a feature that a warp routes: a strip of neighbouring bags, and the place of each of its
// ids among those of a block.
#pragma once

#include "compute/cuda/jobs/routing.h"
#include "compute/cuda/kernels/bags_and_ids.h"
#include "compute/cuda/kernels/checks.h"

namespace shardrec::compute::cuda {

inline constexpr int kStrip = SHARDREC_CUDA_STRIP;
inline constexpr uint32_t kNoSample = ~0U;

using BlockPlace = shardrec_cuda_block_place;

// What a warp has in shared memory.
struct StripMemory {
  uint32_t first_id[kStrip + 1];  // of each bag of the strip, counted from the strip's first id
  BlockPlace places[SHARDREC_CUDA_MOST_SHARED_PLACES];
};
struct StripMemories {
  StripMemory of_warp[kWarps];
};

// Where what the caller gives of a feature begins.
SHARDREC_DEVICE const void* given_ids(const shardrec_cuda_id_routing& job,
                                      const shardrec_cuda_routed_ids& feature) {
  return bytes_behind(job.ids, feature.ids_at);
}
SHARDREC_DEVICE const float* given_weights(const shardrec_cuda_id_routing& job,
                                           const shardrec_cuda_routed_ids& feature) {
  return static_cast<const float*>(bytes_behind(job.weights, feature.weights_at));
}

SHARDREC_DEVICE int64_t chunks_of(const shardrec_cuda_routed_ids& feature) {
  const int64_t items = feature.sequence != 0 ? feature.count : feature.bags;
  return (items + SHARDREC_CUDA_CHUNK - 1) / SHARDREC_CUDA_CHUNK;
}

struct Strip {
  int32_t feature;
  int64_t number;  // among those of the feature
  SHARDREC_DEVICE int64_t first_bag() const { return number * kStrip; }
};

// All lanes of the warp call it.
SHARDREC_DEVICE Strip strip_at(const shardrec_cuda_id_routing& job, int64_t number) {
  const int32_t feature = last_start(job.first_strip, job.feature_count, number);
  return {.feature = feature, .number = number - job.first_strip[feature]};
}

// Where the ids of a feature begin in its list (shardrec_cuda_id_routing::lengths).
SHARDREC_DEVICE uint32_t first_id_of(const shardrec_cuda_id_routing& job, int32_t feature) {
  if (job.lengths == nullptr) return 0;
  return static_cast<uint32_t>(job.strip_sums[job.first_strip[feature]] - job.strip_sums[0]);
}

// Is there something to count? All threads get the same answer.
SHARDREC_DEVICE bool has_good_lengths(const shardrec_cuda_id_routing& job) {
  return job.lengths == nullptr || *job.lengths_are_good != 0;
}

SHARDREC_DEVICE uint32_t length_of_bag(const shardrec_cuda_routed_ids& feature, int64_t bag) {
  return bag < feature.bags ? feature.lengths[bag] : 0;
}

// Fills in where the bags of a strip begin; returns the number of its ids.
SHARDREC_DEVICE uint32_t find_bags(const shardrec_cuda_routed_ids& feature, const Strip& strip,
                                   StripMemory& memory) {
  static_assert(kStrip == 2 * kWarp);
  const int64_t bag = strip.first_bag() + 2 * lane_index();
  const uint32_t length0 = length_of_bag(feature, bag);
  const uint32_t length1 = length_of_bag(feature, bag + 1);
  const uint32_t end = sum_of_lanes_up_to_this(length0 + length1);
  if (lane_index() == 0) memory.first_id[0] = 0;
  memory.first_id[2 * lane_index() + 1] = end - length1;
  memory.first_id[2 * lane_index() + 2] = end;
  __syncwarp();
  return memory.first_id[kStrip];
}

// The bag of the strip that holds an id of it.
SHARDREC_DEVICE int bag_of_id(const StripMemory& memory, uint32_t id) {
  int bag = 0;
#pragma unroll
  for (int step = kStrip / 2; step > 0; step /= 2) {
    if (memory.first_id[bag + step] <= id) bag += step;
  }
  return bag;
}

SHARDREC_DEVICE bool in_range(int64_t id, int64_t rows) {
  return static_cast<uint64_t>(id) < static_cast<uint64_t>(rows);
}

// The row that stands for an id; negative: none.
SHARDREC_DEVICE int64_t row_for(int64_t id, const shardrec_cuda_routed_ids& feature) {
  if (in_range(id, feature.rows)) return id;
  return feature.policy == SHARDREC_CUDA_CLAMP ? 0 : -1;
}

// The interval of a row that is in range.
SHARDREC_DEVICE int32_t interval_of(const shardrec_cuda_routed_ids& feature, int64_t row) {
  if (feature.reciprocal != 0) {
    return static_cast<int32_t>(__umul64hi(static_cast<uint64_t>(row), feature.reciprocal));
  }
  if (feature.even != 0) return static_cast<int32_t>(row / feature.even);
  // The cuts behind the first one that are not above the row, the last one aside.
  return static_cast<int32_t>(count_below(feature.cuts + 1, feature.intervals - 1, row + 1));
}

// Where the id of a lane lies in its block. Lanes with ids of one bag that go to one block are a group.
struct Placed {
  uint32_t id;         // before it in the block
  uint32_t bag;        // the bag's number in the block
  bool leads;          // is the lane the first one of its group?
  bool begins_bag;     // has the block no earlier id of the bag?
  uint32_t group_ids;  // of the group, for the lane that leads it
};

// The places of the ids of a warp, in the order of the lanes, that go to these blocks (negative:
// nowhere) with these samples: lanes put(placed) theirs. All lanes of the warp call it; the places of
// blocks are the warp's alone.
template <class Put>
SHARDREC_DEVICE void place_ids(BlockPlace* places, int32_t block, uint32_t sample, Put put) {
  const unsigned self = 1U << lane_index();
  const bool goes = block >= 0;
  const unsigned same = __match_any_sync(kAllLanes, block);
  const unsigned below = same & (self - 1);
  const int lane_before = below == 0 ? lane_index() : 31 - __clz(static_cast<int>(below));
  const uint32_t sample_before = __shfl_sync(kAllLanes, sample, lane_before);
  const BlockPlace place = goes ? places[block] : BlockPlace{0, 0, kNoSample};
  const bool begins_bag = sample != (below == 0 ? place.last_sample : sample_before);
  const bool leads = below == 0 || begins_bag;
  const unsigned begun = __ballot_sync(kAllLanes, begins_bag ? 1 : 0) & same;
  const unsigned leaders = __ballot_sync(kAllLanes, leads ? 1 : 0) & same;
  if (goes) {
    const unsigned later = leaders & ~(self | (self - 1));
    const unsigned group = later == 0 ? same : same & ((later & (~later + 1)) - 1);
    put(Placed{.id = place.ids + static_cast<uint32_t>(__popc(below)),
               .bag = place.bags + static_cast<uint32_t>(__popc(begun & (below | self))) - 1,
               .leads = leads,
               .begins_bag = begins_bag,
               .group_ids = static_cast<uint32_t>(__popc(group & ~(self - 1)))});
  }
  __syncwarp();  // all have read
  if (goes && (same & ~(self - 1)) == self) {
    places[block] = {place.ids + static_cast<uint32_t>(__popc(same)),
                     place.bags + static_cast<uint32_t>(__popc(begun)), sample};
  }
  __syncwarp();
}

}  // namespace shardrec::compute::cuda
