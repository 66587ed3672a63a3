#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"
#include "compute/cuda/kernels/transfer/rank_means.h"

namespace shardrec::compute::cuda {
namespace {

// Enough threads to fill any device; each takes as many elements as there are.
constexpr int64_t kMostBlocksOfMeans = 1 << 14;

}  // namespace

shardrec_cuda_error load_rank_means() {
  const cudaError_t error = load(average_elements<kFewLevels>);
  return error != cudaSuccess ? error : load(average_elements<SHARDREC_CUDA_SUM_LEVELS>);
}

shardrec_cuda_error average_ranks(shardrec_cuda_stream* stream,
                                  const shardrec_cuda_rank_means* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const int64_t blocks = blocks_for(job->count);
  const bool few = job->ranks < 1 << kFewLevels;
  return launch(few ? average_elements<kFewLevels> : average_elements<SHARDREC_CUDA_SUM_LEVELS>,
                blocks < kMostBlocksOfMeans ? blocks : kMostBlocksOfMeans, 0, stream->commands,
                *job);
}

}  // namespace shardrec::compute::cuda
