// Bytes of a message, cleared where it was broken off (shardrec_cuda_arrival): few blocks, which clear nothing as a
// rule.
#pragma once

#include "compute/cuda/jobs/transfer.h"
#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

SHARDREC_KERNEL(8) clear_stopped(shardrec_cuda_arrival job) {
  uint64_t& stopped = shared<uint64_t>();
  if (threadIdx.x == 0) stopped = load_from_host(job.stop);
  __syncthreads();
  if (stopped == 0) return;
  const int64_t step = int64_t{gridDim.x} * kThreads;
  auto* const vectors = static_cast<uint4*>(job.bytes);
  for (int64_t i = grid_thread_index(); i < job.count / 16; i += step) {
    vectors[i] = uint4{0, 0, 0, 0};
  }
}

}  // namespace shardrec::compute::cuda
