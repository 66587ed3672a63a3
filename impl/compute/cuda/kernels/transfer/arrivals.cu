#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"
#include "compute/cuda/kernels/transfer/arrivals.h"

namespace shardrec::compute::cuda {
namespace {

// Each reads a word over the bus.
constexpr int64_t kMostBlocks = 32;

}  // namespace

shardrec_cuda_error load_arrivals() { return load(clear_stopped); }

shardrec_cuda_error clear_if_stopped(shardrec_cuda_stream* stream,
                                     const shardrec_cuda_arrival* arrival) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const int64_t blocks = blocks_for(arrival->count / 16);
  return launch(clear_stopped, blocks < kMostBlocks ? blocks : kMostBlocks, sizeof(uint64_t),
                stream->commands, *arrival);
}

}  // namespace shardrec::compute::cuda
