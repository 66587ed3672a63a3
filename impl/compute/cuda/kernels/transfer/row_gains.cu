#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"
#include "compute/cuda/kernels/transfer/row_gains.h"

namespace shardrec::compute::cuda {
namespace {

// Enough threads to fill any device; each takes as many elements as there are.
constexpr int64_t kMostBlocksOfGains = 1 << 14;

}  // namespace

shardrec_cuda_error load_row_gains() { return load(add_gains_to_rows); }

shardrec_cuda_error add_row_gains(shardrec_cuda_stream* stream,
                                  const shardrec_cuda_row_gains* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const int64_t blocks = blocks_for(job->count * job->width);
  return launch(add_gains_to_rows, blocks < kMostBlocksOfGains ? blocks : kMostBlocksOfGains, 0,
                stream->commands, *job);
}

}  // namespace shardrec::compute::cuda
