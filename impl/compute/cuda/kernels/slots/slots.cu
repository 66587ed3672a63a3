#include "compute/cuda/kernels/cub_loading.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/slots/slots.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_slots() {
  cudaError_t error = load(pack_slot_indexes);
  if (error == cudaSuccess) error = load(pack_slot_gradients);
  if (error == cudaSuccess) error = load(check_slot_indexes);
  if (error == cudaSuccess) error = load(count_slot_bits);
  if (error == cudaSuccess) error = load_exclusive_sum<uint32_t>();
  return error != cudaSuccess ? error : load(unpack_slot_rows);
}

shardrec_cuda_error pack_slots(shardrec_cuda_stream* stream,
                               const shardrec_cuda_slot_packings* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const cudaError_t error = launch(pack_slot_indexes, job->words.count, 0, stream->commands, *job);
  if (error != cudaSuccess) return error;
  return launch(pack_slot_gradients, job->floats.count, 0, stream->commands, *job);
}

shardrec_cuda_error check_slots(shardrec_cuda_stream* stream, const shardrec_cuda_slot_check* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(check_slot_indexes, job->words.count, 0, stream->commands, *job);
}

shardrec_cuda_error unpack_slots(shardrec_cuda_stream* stream, shardrec_cuda_slot_unpackings* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  size_t bytes = job->room_bytes;
  const auto sum = [&] {
    return exclusive_sum(job->room, bytes, job->set_before, job->set_before, job->words,
                         stream->commands);
  };
  if (job->room == nullptr) {
    const cudaError_t error = sum();
    job->room_bytes = bytes;
    return error;
  }
  if (job->words > 0) {
    cudaError_t error = launch(count_slot_bits, job->items.count, 0, stream->commands, *job);
    if (error == cudaSuccess) error = sum();
    if (error != cudaSuccess) return error;
  }
  return launch(unpack_slot_rows, job->items.count, 0, stream->commands, *job);
}

}  // namespace shardrec::compute::cuda
