#include "compute/cuda/kernels/assembly/held_bags.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_held_bags() {
  cudaError_t error = load(mark_bags);
  if (error == cudaSuccess) error = load(index_bags_held);
  return error != cudaSuccess ? error : load(add_up_chunks);
}

shardrec_cuda_error mark_bag_bits(shardrec_cuda_stream* stream,
                                  const shardrec_cuda_bag_bits* blocks, const int64_t* first_word,
                                  int32_t count, int64_t words) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(mark_bags, blocks_for(words * kWarp), 0, stream->commands, blocks, first_word,
                count);
}

shardrec_cuda_error index_held_bags(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_held_bags* lists,
                                    const int64_t* first_chunk, int32_t count, int64_t chunks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(index_bags_held, blocks_for(chunks * kWarp), 0, stream->commands, lists,
                first_chunk, count);
}

shardrec_cuda_error add_chunk_sums(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_held_bags* lists, int32_t count,
                                   int64_t* rows) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(add_up_chunks, count, kSumOfBlockBytes, stream->commands, lists, rows);
}

}  // namespace shardrec::compute::cuda
