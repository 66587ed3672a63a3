#include "compute/cuda/kernels/gradients/gradient_rows.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_gradient_rows() {
  const cudaError_t error = load(locate_gradient_rows);
  return error != cudaSuccess ? error : load(number_single_occurrences);
}

shardrec_cuda_error locate_gradients(shardrec_cuda_stream* stream,
                                     const shardrec_cuda_gradient_blocks* blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(locate_gradient_rows, blocks->tiles.count, 0, stream->commands, *blocks);
}

shardrec_cuda_error number_occurrences(shardrec_cuda_stream* stream,
                                       const shardrec_cuda_single_occurrences* rows) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(number_single_occurrences, blocks_for(rows->rows + 1), 0, stream->commands, *rows);
}

}  // namespace shardrec::compute::cuda
