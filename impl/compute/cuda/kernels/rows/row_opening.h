// What is found out about touched rows before operations on them: where the gradients of bags lie
// (compute::GradientBlock), whether all of these are aligned, and which rows are hot (hot_rows.h). Rows
// that are opened are noted as changed.
#pragma once

#include "compute/cuda/kernels/rows/hot_rows.h"
#include "compute/cuda/kernels/tiles.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE bool is_unaligned(const float* gradient) {
  return reinterpret_cast<uintptr_t>(gradient) % 16 != 0;
}

// All lanes of the warp call it.
SHARDREC_DEVICE void note_unaligned(uint32_t* place, bool unaligned) {
  if (__any_sync(kAllLanes, unaligned) != 0 && lane_index() == 0) atomicOr(place, 1U);
}

SHARDREC_DEVICE void locate_gradient_rows(const shardrec_cuda_gradient_blocks& job) {
  const auto [b, begin] = own_tile(job.tiles);
  const shardrec_cuda_gradient_block block = job.blocks[b];
  bool unaligned = false;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t row = begin + item_of_tile(k);
    if (row >= block.rows) break;
    const int64_t at = block.sample != nullptr ? block.sample[row] : row;
    const float* const gradient = block.data + at * block.stride;
    block.out[row] = gradient;
    unaligned = unaligned || is_unaligned(gradient);
  }
  note_unaligned(block.unaligned, unaligned);
}

// Sets the bit of touched row i (compute/row_bits.h).
SHARDREC_DEVICE void note_changed(const shardrec_cuda_touched_rows& touched, int64_t i) {
  const int64_t row = global(touched.rows)[i];
  atomicOr(&touched.changed[row / 32], 1U << (row % 32));
}

// A thread for each row, and for each gradient row that has been located before.
SHARDREC_DEVICE void find_hot_rows(const shardrec_cuda_row_opening& job, int64_t block) {
  const int32_t shard = last_start(job.first_block, job.count, block);
  const shardrec_cuda_touched_rows& touched = job.shards[shard];
  const int64_t i = (block - job.first_block[shard]) * kThreads + threadIdx.x;
  if (i < rows_there(touched)) {
    if (touched.changed != nullptr) note_changed(touched, i);
    const int64_t begin = global(touched.run)[i];
    const int64_t end = global(touched.run)[i + 1];
    if (end - begin > SHARDREC_CUDA_HOT_OCCURRENCES) {
      global(touched.hot_row)[i] = list_hot_row(job, shard, i, begin, end);
    }
  }
  note_unaligned(touched.unaligned,
                 i < touched.bag_count && is_unaligned(global(touched.gradients)[i]));
}

// Blocks of threads take the tiles of gradients that are located, those behind them the rows.
SHARDREC_KERNEL(8) open_touched_rows(shardrec_cuda_row_opening job) {
  const int64_t tiles = job.located.tiles.count;
  if (blockIdx.x < tiles) {
    locate_gradient_rows(job.located);
  } else {
    find_hot_rows(job, blockIdx.x - tiles);
  }
}

}  // namespace shardrec::compute::cuda
