// Rows below bounds (compute::RowSearch): a thread for each bound.
#pragma once

#include "compute/cuda/jobs/slots.h"
#include "compute/cuda/kernels/tiles.h"

namespace shardrec::compute::cuda {

SHARDREC_KERNEL(8) find_row_bounds(shardrec_cuda_row_search job) {
  const int64_t i = grid_thread_index();
  if (i >= job.count) return;
  const shardrec_cuda_row_bound& search = job.bounds[i];
  job.before[i] = count_below(search.rows, search.count, search.bound);
}

}  // namespace shardrec::compute::cuda
