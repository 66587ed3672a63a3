#include "compute/cuda/kernels/bag_index.h"
#include "compute/cuda/kernels/cub_loading.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_bag_index() {
  cudaError_t error = load(read_bag_lengths);
  if (error == cudaSuccess) error = load_exclusive_sum<uint64_t>();
  return error != cudaSuccess ? error : load(write_bag_index);
}

shardrec_cuda_error index_bags(shardrec_cuda_stream* stream, shardrec_cuda_bag_indexing* indexing) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_bag_indexing& job = *indexing;
  size_t bytes = job.room_bytes;
  const auto sum = [&] {
    return exclusive_sum(job.room, bytes, job.sums, job.sums, job.lengths + 1, stream->commands);
  };
  if (job.room == nullptr) {
    const cudaError_t error = sum();
    job.room_bytes = bytes;
    return error;
  }
  cudaError_t error =
      launch(read_bag_lengths, blocks_for(job.lengths + 1), 0, stream->commands, job);
  if (error == cudaSuccess) error = sum();
  if (error != cudaSuccess) return error;
  return launch(write_bag_index, blocks_for(job.lengths), 0, stream->commands, job);
}

}  // namespace shardrec::compute::cuda
