#include "compute/cuda/kernels/commands.h"
#include "compute/cuda/kernels/losses/losses.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_losses() {
  const cudaError_t error = load(compute_sample_losses);
  return error != cudaSuccess ? error : load(total_block_losses);
}

shardrec_cuda_error compute_losses(shardrec_cuda_stream* stream, const shardrec_cuda_loss* loss) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const size_t shared_bytes = loss->sums == nullptr ? 0 : sizeof(LossTerms);
  return launch(compute_sample_losses, blocks_for(loss->count), shared_bytes, stream->commands,
                *loss);
}

shardrec_cuda_error total_losses(shardrec_cuda_stream* stream,
                                 const shardrec_cuda_loss_total* total) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(total_block_losses, 1, sizeof(LossTerms), stream->commands, *total);
}

}  // namespace shardrec::compute::cuda
