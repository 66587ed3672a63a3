// The addresses of the gradient rows of bags (compute::GradientBlock), and the occurrences of rows that
// have one each (compute::SingleOccurrences): a thread for each.
#pragma once

#include "compute/cuda/jobs/gradients.h"
#include "compute/cuda/kernels/tiles.h"

namespace shardrec::compute::cuda {

SHARDREC_KERNEL(8) locate_gradient_rows(shardrec_cuda_gradient_blocks job) {
  const auto [b, begin] = own_tile(job.tiles);
  const shardrec_cuda_gradient_block block = job.blocks[b];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t row = begin + item_of_tile(k);
    if (row >= block.rows) break;
    const int64_t at = block.sample != nullptr ? block.sample[row] : row;
    block.out[row] = block.data + at * block.stride;
  }
}

SHARDREC_KERNEL(8) number_single_occurrences(shardrec_cuda_single_occurrences job) {
  const int64_t row = grid_thread_index();
  if (row > job.rows) return;
  job.run[row] = row;
  if (row == job.rows) return;
  if (job.bags != nullptr) job.bags[row] = static_cast<uint32_t>(row);
  job.blocks[row] = 0;
}

}  // namespace shardrec::compute::cuda
