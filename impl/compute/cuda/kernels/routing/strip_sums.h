// How many ids and bags there are before each strip: a scan over the bags of all features, which on the way reads
// the lengths that the caller gives; and a scan over what the strips have counted for each block.
#pragma once

#include "compute/cuda/kernels/routing/given_lengths.h"
#include "compute/cuda/kernels/routing/strips.h"

namespace shardrec::compute::cuda {

// Writes the sums before the strips of a tile. lengths: of this thread's bags. All threads of the block call it.
SHARDREC_DEVICE void sum_strips_of_tile(const shardrec_cuda_id_routing& job, ScanMemory& memory,
                                        int64_t number, const Tile& tile,
                                        const uint32_t (&lengths)[kTileItems]) {
  static_assert(kStrip == 2 * kWarp && kTileItems % 2 == 0);
  constexpr int kStrips = kTileItems / 2;  // of a warp
  uint64_t before[kStrips];                // in the warp
  uint64_t of_warp = 0;
#pragma unroll
  for (int s = 0; s < kStrips; ++s) {
    const uint64_t up_to =
        sum_of_lanes_up_to_this(bag_with_ids(lengths[2 * s]) + bag_with_ids(lengths[2 * s + 1]));
    before[s] = of_warp;
    of_warp += __shfl_sync(kAllLanes, up_to, kWarp - 1);
  }
  const uint64_t before_warp = sum_before_warp(job.scan, memory, 0, number, of_warp);
  if (lane_index() != 0) return;
  const shardrec_cuda_routed_ids& feature = job.features[tile.list];
  const int64_t first = tile.begin / kStrip + warp_index() * kStrips;
#pragma unroll
  for (int s = 0; s < kStrips; ++s) {
    if (first + s < feature.strips) feature.strip_sums[first + s] = before_warp + before[s];
  }
  if (number + 1 == job.bag_tiles.count && warp_index() == kWarps - 1) {
    job.strip_sums[job.strips] = before_warp + of_warp;
  }
}

// Are all lengths good, and do they add up to the ids of the batch? All lanes of a warp call it, when the lengths of
// all features have been read.
SHARDREC_DEVICE void check_lengths(const shardrec_cuda_id_routing& job) {
  bool wrong = false;
  uint64_t sum = 0;
  for (int32_t f = lane_index(); f < job.feature_count; f += kWarp) {
    wrong = wrong || load_relaxed(&job.lengths[f].wrong) != 0;
    const bool counts = job.given->are_offsets == 0 || f + 1 == job.feature_count;
    if (counts) sum += load_relaxed(&job.lengths[f].sum);
  }
  const bool any_wrong = __any_sync(kAllLanes, wrong) != 0;
  const uint64_t all = sum_of_lanes_up_to_this(sum);
  if (lane_index() == kWarp - 1) {
    *job.lengths_are_good = !any_wrong && all == static_cast<uint64_t>(job.all_ids) ? 1U : 0U;
  }
}

SHARDREC_KERNEL(3) read_and_sum_strips(shardrec_cuda_id_routing job) {
  auto& memory = shared<ScanMemory>();
  const int64_t number = take_tile(job.scan, memory);
  const Tile tile = tile_at(job.bag_tiles, number);
  uint32_t lengths[kTileItems];
  read_given_lengths(job.given[tile.list], job.given_lengths, tile.begin, job.lengths[tile.list],
                     lengths);
  sum_strips_of_tile(job, memory, number, tile, lengths);
  const bool is_last = is_last_of_blocks(job.scan.ended, memory.is_last, job.bag_tiles.count);
  if (is_last && warp_index() == 0) check_lengths(job);
}

// The same of lengths that have been read.
SHARDREC_KERNEL(6) sum_strips(shardrec_cuda_id_routing job) {
  auto& memory = shared<ScanMemory>();
  const int64_t number = take_tile(job.scan, memory);
  const Tile tile = tile_at(job.bag_tiles, number);
  const shardrec_cuda_routed_ids& feature = job.features[tile.list];
  uint32_t lengths[kTileItems];
  load_items_of_warp(feature.lengths, tile.begin, feature.bags, lengths);
  sum_strips_of_tile(job, memory, number, tile, lengths);
}

// Puts the sums of the strips before each in place of what strips have counted for a block, and tells the
// block's total.
SHARDREC_KERNEL(4) sum_strips_of_blocks(shardrec_cuda_id_routing job) {
  auto& memory = shared<ScanMemory>();
  const int64_t number = take_tile(job.sum_scan, memory);
  const Tile tile = tile_at(job.sum_tiles, number);
  const shardrec_cuda_strips_of_block block = job.strips_of_blocks[tile.list];
  uint64_t counted[kTileItems];
  load_items_of_warp(block.sums, tile.begin, block.strips, counted);
  uint64_t before[kTileItems];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) before[k] = counted[k];
  const uint64_t of_warp = sum_items_before(before);
  const uint64_t before_warp =
      sum_before_warp(job.sum_scan, memory, job.sum_tiles.first[tile.list], number, of_warp);
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = tile.begin + item_of_warp(k);
    if (i < block.strips) block.sums[i] = before_warp + before[k];
    if (i + 1 == block.strips) {
      job.counts[block.number] = before_warp + before[k] + counted[k];
    }
  }
}

}  // namespace shardrec::compute::cuda
