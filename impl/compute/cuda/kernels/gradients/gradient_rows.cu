#include "compute/cuda/kernels/gradients/gradient_rows.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_gradient_rows() { return load(number_single_occurrences); }

shardrec_cuda_error number_occurrences(shardrec_cuda_stream* stream,
                                       const shardrec_cuda_single_occurrences* rows) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(number_single_occurrences, blocks_for(rows->rows + 1), 0, stream->commands, *rows);
}

}  // namespace shardrec::compute::cuda
