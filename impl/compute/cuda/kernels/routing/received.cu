#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/routing/received.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_received() {
  const cudaError_t error = load(check_bags_of_blocks);
  return error != cudaSuccess ? error : load(expand_ids_of_blocks);
}

shardrec_cuda_error check_bags(shardrec_cuda_stream* stream, const shardrec_cuda_bag_check* check) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(check_bags_of_blocks, check->tiles.count, 0, stream->commands, *check);
}

shardrec_cuda_error expand_ids(shardrec_cuda_stream* stream,
                               const shardrec_cuda_id_expansion* expansion) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(expand_ids_of_blocks, expansion->tiles.count, 0, stream->commands, *expansion);
}

}  // namespace shardrec::compute::cuda
