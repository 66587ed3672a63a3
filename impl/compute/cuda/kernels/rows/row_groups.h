// Occurrences of rows, grouped by row (compute::RowGroups): a key for each in canonical order, which a
// stable sort puts in the order of rows; then the heads of equal keys are numbered by a scan.
#pragma once

#include "compute/cuda/jobs/rows.h"
#include "compute/cuda/kernels/tiles.h"

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

// Which occurrences, in the order of rows, are the first ones of their rows. No two parts share a key.
template <class Key>
SHARDREC_KERNEL(8)
mark_heads(const Key* sorted_keys, uint32_t* heads, int64_t occurrences) {
  const int64_t i = grid_thread_index();
  if (i < occurrences) heads[i] = i == 0 || sorted_keys[i] != sorted_keys[i - 1] ? 1 : 0;
}

// So many occurrences of a thread are read before the first of them is written.
inline constexpr int kListedTogether = 4;

// job.keys: heads before each occurrence. A sum over all parts may wrap: the difference inside one does
// not.
template <class Key, class Value>
SHARDREC_KERNEL(4)
list_rows(shardrec_cuda_row_grouping job) {
  const auto [p, begin] = own_tile(job.part_tiles);
  const shardrec_cuda_grouped_part part = job.parts[p];
  if (part.occurrences == 0) {
    if (threadIdx.x == 0) part.run[0] = 0;
    return;
  }
  const auto* const sorted_keys = static_cast<const Key*>(job.sorted_keys) + part.first_occurrence;
  const auto* const heads_before = static_cast<const uint32_t*>(job.keys) + part.first_occurrence;
  const uint32_t of_parts_before = heads_before[0];
#pragma unroll 1
  for (int first = 0; first < kTileItems; first += kListedTogether) {
    Key keys[kListedTogether];
    uint32_t rows[kListedTogether];
    bool heads[kListedTogether];
#pragma unroll
    for (int k = 0; k < kListedTogether; ++k) {
      const int64_t o = begin + item_of_tile(first + k);
      if (o >= part.occurrences) continue;
      keys[k] = sorted_keys[o];
      rows[k] = heads_before[o] - of_parts_before;
      heads[k] = o == 0 || keys[k] != sorted_keys[o - 1];
    }
#pragma unroll
    for (int k = 0; k < kListedTogether; ++k) {
      const int64_t o = begin + item_of_tile(first + k);
      if (o >= part.occurrences) break;
      if (heads[k]) {
        part.rows[rows[k]] = static_cast<int64_t>(keys[k] - static_cast<Key>(part.first_key));
        part.run[rows[k]] = o;
      }
      if (o + 1 == part.occurrences) {
        const uint32_t count = rows[k] + (heads[k] ? 1 : 0);
        part.run[count] = part.occurrences;
        job.row_counts[p] = count;
      }
      if constexpr (sizeof(Value) == sizeof(uint64_t)) {
        const int64_t i = part.first_occurrence + o;
        const Value value = static_cast<const Value*>(job.sorted_values)[i];
        job.bags[i] = static_cast<uint32_t>(value);
        job.weights[i] = __uint_as_float(static_cast<uint32_t>(value >> 32));
      }
    }
  }
}

}  // namespace shardrec::compute::cuda
