#include "compute/cuda/kernels/cub_loading.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/routing/batch.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_batch() {
  cudaError_t error = load(read_lengths_of_features);
  if (error == cudaSuccess) error = load(read_bags_of_samples);
  if (error == cudaSuccess) error = load_sort_pairs<uint64_t, uint32_t>();
  return error != cudaSuccess ? error : load(write_sorted_samples);
}

shardrec_cuda_error read_lengths(shardrec_cuda_stream* stream,
                                 const shardrec_cuda_length_reading* reading) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(read_lengths_of_features, reading->tiles.count, 0, stream->commands, *reading);
}

shardrec_cuda_error sort_samples(shardrec_cuda_stream* stream,
                                 shardrec_cuda_sample_sorting* sorting) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_sample_sorting& job = *sorting;
  size_t bytes = job.room_bytes;
  const auto sort = [&] {
    return sort_pairs(job.room, bytes, job.keys, job.sorted_keys, job.values, job.sorted_values,
                      job.samples, 0, job.key_bits, stream->commands);
  };
  if (job.room == nullptr) {
    const cudaError_t error = sort();
    job.room_bytes = bytes;
    return error;
  }
  cudaError_t error =
      launch(read_bags_of_samples, job.sample_tiles.count, 0, stream->commands, job);
  if (error == cudaSuccess && job.samples != 0) error = sort();
  if (error != cudaSuccess) return error;
  return launch(write_sorted_samples, job.list_tiles.count, 0, stream->commands, job);
}

}  // namespace shardrec::compute::cuda
