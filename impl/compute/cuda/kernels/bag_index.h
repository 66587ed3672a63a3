// Where the bags of blocks begin: a scan over the lengths of each block.
#pragma once

#include "compute/cuda/jobs/bags.h"
#include "compute/cuda/kernels/bags_and_ids.h"
#include "compute/cuda/kernels/chained_scan.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE int64_t lengths_of(const shardrec_cuda_bags& bags) {
  return bags.sparse_lengths != nullptr ? bags.bags : bags.samples;
}

SHARDREC_DEVICE uint32_t length_at(const shardrec_cuda_bags& bags, int64_t i) {
  return bags.sparse_lengths != nullptr ? bags.sparse_lengths[i].count : bags.dense_lengths[i];
}

// before: bags and ids before length i.
SHARDREC_DEVICE void write_bag(const shardrec_cuda_bag_index& block, int64_t i, int64_t lengths,
                               uint32_t length, uint64_t before) {
  const uint32_t bag = bags_of(before);
  const uint32_t id = ids_of(before);
  if (length != 0) {
    block.first_id[bag] = id;
    if (block.sample != nullptr) {
      block.sample[bag] = block.bags.sparse_lengths != nullptr ? block.bags.sparse_lengths[i].sample
                                                               : static_cast<uint32_t>(i);
    }
  }
  if (i + 1 == lengths) block.first_id[bag + (length != 0 ? 1 : 0)] = id + length;
}

SHARDREC_KERNEL(4) index_bags_of_blocks(shardrec_cuda_bag_indexing job) {
  auto& memory = shared<ScanMemory>();
  const int64_t number = take_tile(job.scan, memory);
  const Tile tile = tile_at(job.tiles, number);
  const shardrec_cuda_bag_index block = job.blocks[tile.list];
  const int64_t count = lengths_of(block.bags);
  uint32_t lengths[kTileItems];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = tile.begin + item_of_warp(k);
    lengths[k] = i < count ? length_at(block.bags, i) : 0;
  }
  uint64_t before[kTileItems];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) before[k] = bag_with_ids(lengths[k]);
  const uint64_t of_warp = sum_items_before(before);
  const uint64_t before_warp =
      sum_before_warp(job.scan, memory, job.tiles.first[tile.list], number, of_warp);
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = tile.begin + item_of_warp(k);
    if (i < count) write_bag(block, i, count, lengths[k], before_warp + before[k]);
  }
}

}  // namespace shardrec::compute::cuda
