#include "compute/cuda/kernels/cub_loading.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/slots/slot_sums.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_slot_sums() {
  cudaError_t error = load(mark_slot_rows);
  if (error == cudaSuccess) error = load_exclusive_sum<uint32_t>();
  if (error == cudaSuccess) error = load(write_sum_indexes);
  if (error == cudaSuccess) error = load(add_slot_gradients<kFewLevels>);
  return error != cudaSuccess ? error : load(add_slot_gradients<SHARDREC_CUDA_SUM_LEVELS>);
}

shardrec_cuda_error count_slot_sums(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_slot_sums* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(mark_slot_rows, job->items.count, 0, stream->commands, *job);
}

shardrec_cuda_error add_slots(shardrec_cuda_stream* stream, shardrec_cuda_slot_sums* job) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  size_t bytes = job->room_bytes;
  const auto sum = [&] {
    return exclusive_sum(job->room, bytes, job->marks, job->marks, job->all_items + 1,
                         stream->commands);
  };
  if (job->room == nullptr) {
    const cudaError_t error = sum();
    job->room_bytes = bytes;
    return error;
  }
  cudaError_t error = launch(mark_slot_rows, job->items.count, 0, stream->commands, *job);
  if (error == cudaSuccess) error = sum();
  if (error == cudaSuccess) {
    error = launch(write_sum_indexes, job->items.count, 0, stream->commands, *job);
  }
  if (error != cudaSuccess) return error;
  const bool few = job->most_ranks < 1 << kFewLevels;
  return launch(few ? add_slot_gradients<kFewLevels> : add_slot_gradients<SHARDREC_CUDA_SUM_LEVELS>,
                job->rows.count, 0, stream->commands, *job);
}

}  // namespace shardrec::compute::cuda
