#include "compute/cuda/kernels/assembly/node_sums.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_node_sums() { return load(count_present_words); }

shardrec_cuda_error count_present(shardrec_cuda_stream* stream,
                                  const shardrec_cuda_present_words* unions, int32_t count,
                                  int64_t* rows) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(count_present_words, count, kSumOfBlockBytes, stream->commands, unions, rows);
}

}  // namespace shardrec::compute::cuda
