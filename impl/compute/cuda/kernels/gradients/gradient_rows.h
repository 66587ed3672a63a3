// The occurrences of rows that have one each (compute::SingleOccurrences): a thread for each.
#pragma once

#include "compute/cuda/jobs/gradients.h"
#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

SHARDREC_KERNEL(8) number_single_occurrences(shardrec_cuda_single_occurrences job) {
  const int64_t row = grid_thread_index();
  if (row > job.rows) return;
  job.run[row] = row;
  if (row == job.rows) return;
  if (job.bags != nullptr) job.bags[row] = static_cast<uint32_t>(row);
  job.blocks[row] = 0;
}

}  // namespace shardrec::compute::cuda
