#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/routing/local_ids.h"
#include "compute/cuda/kernels/routing/routing_write.h"
#include "compute/cuda/kernels/routing/strip_sums.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

int64_t blocks_of_strips(const shardrec_cuda_id_routing& job) {
  return (job.strips + kWarps - 1) / kWarps;
}

}  // namespace

shardrec_cuda_error load_routing() {
  for (const auto kernel : {read_and_sum_strips, sum_strips, check_whole_features, count_strips,
                            sum_strips_of_blocks, write_whole_features, write_strips}) {
    const cudaError_t error = load(kernel);
    if (error != cudaSuccess) return error;
  }
  return load(check_and_copy_ids);
}

shardrec_cuda_error count_ids(shardrec_cuda_stream* stream,
                              const shardrec_cuda_id_routing* routing) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const shardrec_cuda_id_routing& job = *routing;
  cudaError_t error = launch(job.given != nullptr ? read_and_sum_strips : sum_strips,
                             job.bag_tiles.count, sizeof(ScanMemory), stream->commands, job);
  if (error == cudaSuccess && job.cut_features != job.feature_count) {
    error = launch(check_whole_features, job.tiles.count + blocks_for(job.block_count), 0,
                   stream->commands, job);
  }
  if (error != cudaSuccess || job.cut_features == 0) return error;
  error = launch(count_strips, blocks_of_strips(job), sizeof(StripMemories), stream->commands, job);
  if (error != cudaSuccess) return error;
  return launch(sum_strips_of_blocks, job.sum_tiles.count, sizeof(ScanMemory), stream->commands,
                job);
}

shardrec_cuda_error write_ids(shardrec_cuda_stream* stream,
                              const shardrec_cuda_id_routing* routing) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const shardrec_cuda_id_routing& job = *routing;
  cudaError_t error = cudaSuccess;
  if (job.cut_features != job.feature_count) {
    error = launch(write_whole_features, job.tiles.count + blocks_of_strips(job), 0,
                   stream->commands, job);
  }
  if (error == cudaSuccess && job.cut_features != 0) {
    error =
        launch(write_strips, blocks_of_strips(job), sizeof(StripMemories), stream->commands, job);
  }
  return error;
}

shardrec_cuda_error copy_local_ids(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_id_routing* routing,
                                   const shardrec_cuda_local_ids* to) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const shardrec_cuda_id_routing& job = *routing;
  const cudaError_t error =
      launch(read_and_sum_strips, job.bag_tiles.count, sizeof(ScanMemory), stream->commands, job);
  if (error != cudaSuccess) return error;
  const int64_t sums = job.strips > job.block_count ? job.strips : job.block_count;
  return launch(check_and_copy_ids, job.tiles.count + blocks_for(sums), sizeof(LocalMemory),
                stream->commands, job, *to);
}

}  // namespace shardrec::compute::cuda
