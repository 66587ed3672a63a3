#include "compute/cuda/kernels/cub_loading.h"
#include "compute/cuda/kernels/gradients/kept_gradients.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_kept_gradients() {
  cudaError_t error = load(mark_new_rows);
  if (error == cudaSuccess) error = load_exclusive_sum<uint32_t>();
  if (error == cudaSuccess) error = load(merge_kept_rows);
  if (error == cudaSuccess) error = load(add_kept_gradients<float>);
  return error != cudaSuccess ? error : load(add_kept_gradients<float4>);
}

shardrec_cuda_error find_new_rows(shardrec_cuda_stream* stream, shardrec_cuda_kept_addition* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  size_t bytes = job->room_bytes;
  const auto sum = [&] {
    return exclusive_sum(job->room, bytes, job->new_before, job->new_before, job->count + 1,
                         stream->commands);
  };
  if (job->room == nullptr) {
    const cudaError_t error = sum();
    job->room_bytes = bytes;
    return error;
  }
  const cudaError_t error =
      launch(mark_new_rows, blocks_for(job->count + 1), 0, stream->commands, *job);
  return error != cudaSuccess ? error : sum();
}

shardrec_cuda_error add_kept(shardrec_cuda_stream* stream, const shardrec_cuda_kept_addition* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const cudaError_t error =
      launch(merge_kept_rows, blocks_for(job->kept.count + job->count), 0, stream->commands, *job);
  if (error != cudaSuccess) return error;
  return launch(job->vectors != 0 ? add_kept_gradients<float4> : add_kept_gradients<float>,
                blocks_for(job->count << job->lane_bits), 0, stream->commands, *job);
}

}  // namespace shardrec::compute::cuda
