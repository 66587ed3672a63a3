// Means over ranks (compute::RankMeans): a thread for each element.
#pragma once

#include "compute/cuda/kernels/rank_tree.h"
#include "compute/cuda/kernels/transfer/row_codes.h"

namespace shardrec::compute::cuda {

template <int kLevels>
SHARDREC_KERNEL(4)
average_elements(shardrec_cuda_rank_means job) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = grid_thread_index(); i < job.count; i += step) {
    RankTree<kLevels> tree;
    for (int32_t rank = 0; rank < job.ranks; ++rank) {
      float x[1];
      load_numbers(global(job.elements[rank]), job.element, i, x);
      tree.add(rank, true, x[0]);
    }
    store_number(job.means, job.element, i, tree.sum(job.ranks) / static_cast<float>(job.ranks));
  }
}

}  // namespace shardrec::compute::cuda
