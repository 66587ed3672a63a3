// How many touched rows there are for an update, in one block: all shards see the same word, and are updated or not.
#pragma once

#include "compute/cuda/jobs/rows.h"
#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

SHARDREC_KERNEL(8) count_guarded_rows(shardrec_cuda_row_guard job) {
  uint64_t& stopped = shared<uint64_t>();
  if (threadIdx.x == 0) {
    stopped = load_from_host(job.stop);
    if (job.updates != nullptr) {
      const uint64_t counts = load_from_host(job.updates);
      const uint64_t left_out = (counts >> 32) + (stopped != 0 ? 1 : 0);
      store_to_host(job.updates, left_out << 32 | static_cast<uint32_t>(counts + 1));
    }
  }
  __syncthreads();
  for (int32_t s = static_cast<int32_t>(threadIdx.x); s < job.shards; s += kThreads) {
    const int64_t* const counted = job.counted[s];
    const int64_t rows = counted == nullptr ? job.counts[s] : *global(counted);
    job.there[s] = stopped != 0 ? 0 : rows;
  }
}

}  // namespace shardrec::compute::cuda
