// Where the bags of blocks begin: a scan over all of their lengths, a thread for each.
#pragma once

#include "compute/cuda/jobs/bags.h"
#include "compute/cuda/kernels/bags_and_ids.h"

namespace shardrec::compute::cuda {

// The block of length `number` among those of all blocks.
SHARDREC_DEVICE int64_t block_of(const shardrec_cuda_bag_indexing& job, int64_t number) {
  int64_t first = 0;
  int64_t end = job.count;
  while (end - first > 1) {
    const int64_t middle = first + (end - first) / 2;
    if (job.first_length[middle] <= number) {
      first = middle;
    } else {
      end = middle;
    }
  }
  return first;
}

SHARDREC_DEVICE uint32_t length_at(const shardrec_cuda_bags& bags, int64_t i) {
  return bags.sparse_lengths != nullptr ? bags.sparse_lengths[i].count : bags.dense_lengths[i];
}

SHARDREC_KERNEL(8) read_bag_lengths(shardrec_cuda_bag_indexing job) {
  const int64_t number = grid_thread_index();
  if (number > job.lengths) return;
  if (number == job.lengths) {
    job.sums[number] = 0;
    return;
  }
  const int64_t block = block_of(job, number);
  job.sums[number] =
      bag_with_ids(length_at(job.blocks[block].bags, number - job.first_length[block]));
}

// sums: of the lengths before each.
SHARDREC_KERNEL(8) write_bag_index(shardrec_cuda_bag_indexing job) {
  const int64_t number = grid_thread_index();
  if (number >= job.lengths) return;
  const int64_t b = block_of(job, number);
  const shardrec_cuda_bag_index& block = job.blocks[b];
  const int64_t i = number - job.first_length[b];
  const uint32_t length = length_at(block.bags, i);
  const uint64_t before = job.sums[number] - job.sums[job.first_length[b]];
  const uint32_t bag = bags_of(before);
  const uint32_t id = ids_of(before);
  if (length != 0) {
    block.first_id[bag] = id;
    if (block.sample != nullptr) {
      block.sample[bag] = block.bags.sparse_lengths != nullptr ? block.bags.sparse_lengths[i].sample
                                                               : static_cast<uint32_t>(i);
    }
  }
  if (number + 1 == job.first_length[b + 1]) {
    block.first_id[bag + (length != 0 ? 1 : 0)] = id + length;
  }
}

}  // namespace shardrec::compute::cuda
