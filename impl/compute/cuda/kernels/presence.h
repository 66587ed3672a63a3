// Which items of a list there are rows of: bits, and the rows before each word of them.
#pragma once

#include "compute/cuda/jobs/cuda_plugin.h"
#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

inline constexpr int kChunkWords = SHARDREC_CUDA_CHUNK / 64;

// The sum of value over the threads of the block up to this one; all: over all threads. All of them call
// it; the block's shared memory is a number for each of its warps.
SHARDREC_DEVICE uint32_t sum_of_block_up_to_this(uint32_t value, uint32_t& all) {
  struct WarpSums {
    uint32_t sum[kWarps];
  };
  auto& warps = shared<WarpSums>();
  uint32_t sum = sum_of_lanes_up_to_this(value);
  if (lane_index() == kWarp - 1) warps.sum[warp_index()] = sum;
  __syncthreads();
  all = 0;
  for (int warp = 0; warp < kWarps; ++warp) {
    if (warp < warp_index()) sum += warps.sum[warp];
    all += warps.sum[warp];
  }
  __syncthreads();
  return sum;
}
inline constexpr size_t kSumOfBlockBytes = kWarps * sizeof(uint32_t);

// Has the list a row of an item, and which?
SHARDREC_DEVICE bool is_present(const shardrec_cuda_presence& presence, int64_t item) {
  return (global(presence.bits)[item / 64] >> (item % 64) & 1) != 0;
}
SHARDREC_DEVICE int64_t row_of(const shardrec_cuda_presence& presence, int64_t item) {
  const uint64_t below = global(presence.bits)[item / 64] & ((uint64_t{1} << (item % 64)) - 1);
  return int64_t{global(presence.before)[item / 64]} + __popcll(below);
}

}  // namespace shardrec::compute::cuda
