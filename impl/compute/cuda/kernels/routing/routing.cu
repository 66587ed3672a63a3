#include "compute/cuda/kernels/cub_loading.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/routing/routing_write.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

int64_t blocks_of_strips(const shardrec_cuda_id_routing& job) {
  return (job.strips + kWarps - 1) / kWarps;
}

}  // namespace

shardrec_cuda_error load_routing() {
  for (const auto kernel : {sum_strips, check_whole_features, count_strips, total_blocks,
                            write_whole_features, write_whole_bags, write_strips}) {
    const cudaError_t error = load(kernel);
    if (error != cudaSuccess) return error;
  }
  return load_exclusive_sum<uint64_t>();
}

shardrec_cuda_error count_ids(shardrec_cuda_stream* stream, shardrec_cuda_id_routing* routing) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_id_routing& job = *routing;
  size_t bytes = job.room_bytes;
  const auto sum_up = [&](uint64_t* sums, int64_t count) {
    return exclusive_sum(job.room, bytes, sums, sums, count + 1, stream->commands);
  };
  if (job.room == nullptr) {
    cudaError_t error = sum_up(job.strip_sums, job.strips);
    job.room_bytes = bytes;
    if (error == cudaSuccess) error = sum_up(job.block_sums, job.block_sum_count);
    if (bytes > job.room_bytes) job.room_bytes = bytes;
    return error;
  }
  if (job.strips == 0) return cudaSuccess;

  const int64_t blocks = blocks_of_strips(job);
  cudaError_t error = launch(sum_strips, blocks, 0, stream->commands, job);
  if (error == cudaSuccess) error = sum_up(job.strip_sums, job.strips);
  if (error == cudaSuccess) {
    error = launch(check_whole_features, job.tiles.count, 0, stream->commands, job);
  }
  if (error == cudaSuccess && job.cut_features != 0) {
    error = launch(count_strips, blocks, sizeof(StripMemories), stream->commands, job);
    bytes = job.room_bytes;
    if (error == cudaSuccess) error = sum_up(job.block_sums, job.block_sum_count);
  }
  if (error != cudaSuccess) return error;
  return launch(total_blocks, blocks_for(job.block_count), 0, stream->commands, job);
}

shardrec_cuda_error write_ids(shardrec_cuda_stream* stream,
                              const shardrec_cuda_id_routing* routing) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const shardrec_cuda_id_routing& job = *routing;
  cudaError_t error = launch(write_whole_features, job.tiles.count, 0, stream->commands, job);
  if (error == cudaSuccess && job.cut_features != job.feature_count) {
    error = launch(write_whole_bags, blocks_of_strips(job), 0, stream->commands, job);
  }
  if (error == cudaSuccess && job.cut_features != 0) {
    error =
        launch(write_strips, blocks_of_strips(job), sizeof(StripMemories), stream->commands, job);
  }
  return error;
}

}  // namespace shardrec::compute::cuda
