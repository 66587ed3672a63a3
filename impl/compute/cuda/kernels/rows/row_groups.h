// Occurrences of rows, grouped by row (compute::RowGroups): a key for each in canonical order, which a
// stable sort puts in the order of rows; then a scan numbers the heads of equal keys.
#pragma once

#include "compute/cuda/jobs/rows.h"
#include "compute/cuda/kernels/chained_scan.h"
#include "compute/cuda/kernels/checks.h"

namespace shardrec::compute::cuda {

// Where the bags begin that ids of a tile are in. None is empty: there are no more than ids.
struct TileBags {
  uint32_t first_id[kTile];
};

SHARDREC_DEVICE int64_t row_at(const shardrec_cuda_grouped_block& block, int64_t id) {
  return block.ids_are_64 != 0 ? static_cast<const int64_t*>(block.ids)[id]
                               : static_cast<const int32_t*>(block.ids)[id];
}

SHARDREC_DEVICE uint32_t block_of_sample(const shardrec_cuda_grouped_block& block,
                                         uint32_t sample) {
  return block.feature_block +
         static_cast<uint32_t>((block.first_sample + sample) / SHARDREC_CUDA_BLOCK_SAMPLES);
}

// The bag that an id is in, among `bags` of a tile.
SHARDREC_DEVICE int bag_in_tile(const TileBags& tile, int bags, uint32_t id) {
  int first = 0;  // its first id is not above `id`
  int end = bags;
  while (end - first > 1) {
    const int middle = (first + end) / 2;
    if (tile.first_id[middle] <= id) {
      first = middle;
    } else {
      end = middle;
    }
  }
  return first;
}

SHARDREC_DEVICE uint64_t bag_and_weight(uint32_t bag, float weight) {
  return uint64_t{__float_as_uint(weight)} << 32 | bag;
}

// Keys and values of the occurrences, and the blocks of the bags.
template <class Key, class Value>
SHARDREC_KERNEL(6)
write_occurrences(shardrec_cuda_row_grouping job) {
  const auto [b, begin] = own_tile(job.block_tiles);
  const shardrec_cuda_grouped_block block = job.blocks[b];
  const int64_t left = block.count - begin;
  const int ids = left < kTile ? static_cast<int>(left) : kTile;
  const int64_t first_bag = last_start(block.first_id, block.bags, begin);
  const int64_t last_bag = last_start(block.first_id, block.bags, begin + ids - 1);
  const int bags = static_cast<int>(last_bag - first_bag) + 1;

  TileBags& tile_bags = shared<TileBags>();
  for (int i = static_cast<int>(threadIdx.x); i < bags; i += kThreads) {
    tile_bags.first_id[i] = block.first_id[first_bag + i];
  }
  __syncthreads();

  Key* const keys = static_cast<Key*>(job.keys) + block.first_occurrence;
  Value* const values = static_cast<Value*>(job.values) + block.first_occurrence;
  Key rows[kTileItems];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int i = item_of_tile(k);
    if (i < ids) rows[k] = static_cast<Key>(row_at(block, begin + i));
  }
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int i = item_of_tile(k);
    if (i >= ids) break;
    const int64_t id = begin + i;
    const int in_tile = bag_in_tile(tile_bags, bags, static_cast<uint32_t>(id));
    const int64_t bag = first_bag + in_tile;
    const auto in_part = static_cast<uint32_t>(block.sequence != 0 ? id : bag) + block.first_bag;
    if (block.sequence != 0 || tile_bags.first_id[in_tile] == static_cast<uint32_t>(id)) {
      block.block_of[in_part] = block_of_sample(block, block.sample[bag]);
    }
    keys[id] = static_cast<Key>(block.first_key) + rows[k];
    if constexpr (sizeof(Value) == sizeof(uint64_t)) {
      values[id] = bag_and_weight(in_part, block.weights != nullptr ? block.weights[id] : 1.0F);
    } else {
      values[id] = in_part;
    }
  }
}

// The weights and the bags of a tile's occurrences, in the order of rows.
SHARDREC_DEVICE void part_values(const shardrec_cuda_row_grouping& job, int64_t first,
                                 int64_t left) {
  uint64_t values[kTileItems];
  load_items(static_cast<const uint64_t*>(job.sorted_values) + first, 0, left, values);
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int i = item_of_tile(k);
    if (i >= left) break;
    job.bags[first + i] = static_cast<uint32_t>(values[k]);
    job.weights[first + i] = __uint_as_float(static_cast<uint32_t>(values[k] >> 32));
  }
}

// Which of 32 occurrences of a tile, of which this lane has the key, are the first ones of their rows. before: the key
// before those of the warp; then that of the last lane.
template <class Key>
SHARDREC_DEVICE unsigned heads_of(Key key, bool exists, bool is_first, Key& before) {
  const Key below = __shfl_up_sync(kAllLanes, key, 1);
  const bool differs = key != (lane_index() == 0 ? before : below);
  before = __shfl_sync(kAllLanes, key, kWarp - 1);
  return __ballot_sync(kAllLanes, exists && (is_first || differs));
}

// Lists the rows of parts, where the occurrences of each begin, and how many rows there are. No two parts share a key.
template <class Key, class Value>
SHARDREC_KERNEL(4)
list_rows(shardrec_cuda_row_grouping job) {
  auto& memory = shared<ScanMemory>();
  const int64_t number = take_tile(job.scan, memory);
  const auto [p, begin] = tile_at(job.part_tiles, number);
  const shardrec_cuda_grouped_part part = job.parts[p];
  const auto* const sorted_keys = static_cast<const Key*>(job.sorted_keys) + part.first_occurrence;
  Key keys[kTileItems];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t o = begin + item_of_warp(k);
    keys[k] = o < part.occurrences ? sorted_keys[o] : Key{0};
  }
  const int64_t first_of_warp = begin + warp_index() * (kTile / kWarps);
  Key before = first_of_warp != 0 && first_of_warp < part.occurrences
                   ? sorted_keys[first_of_warp - 1]
                   : Key{0};
  unsigned heads[kTileItems];
  uint64_t of_warp = 0;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t o = begin + item_of_warp(k);
    heads[k] = heads_of(keys[k], o < part.occurrences, o == 0, before);
    of_warp += static_cast<unsigned>(__popc(heads[k]));
  }
  auto row = static_cast<uint32_t>(
      sum_before_warp(job.scan, memory, job.part_tiles.first[p], number, of_warp));
  const unsigned below = (1U << lane_index()) - 1;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t o = begin + item_of_warp(k);
    if ((heads[k] >> lane_index() & 1) != 0) {
      const uint32_t own = row + static_cast<unsigned>(__popc(heads[k] & below));
      part.rows[own] = static_cast<int64_t>(keys[k] - static_cast<Key>(part.first_key));
      part.run[own] = o;
    }
    row += static_cast<unsigned>(__popc(heads[k]));
    if (o + 1 == part.occurrences) {
      part.run[row] = part.occurrences;
      job.row_counts[p] = row;
    }
  }
  if constexpr (sizeof(Value) == sizeof(uint64_t)) {
    part_values(job, part.first_occurrence + begin, part.occurrences - begin);
  }
  if (part.occurrences == 0 && threadIdx.x == 0) {
    part.run[0] = 0;
    job.row_counts[p] = 0;
  }
}

}  // namespace shardrec::compute::cuda
