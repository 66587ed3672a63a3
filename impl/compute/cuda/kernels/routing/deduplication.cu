#include "compute/cuda/kernels/cub_loading.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/routing/deduplication.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_deduplication() {
  cudaError_t error = load(find_slots_of_ids);
  if (error == cudaSuccess) error = load(find_places_of_ids);
  if (error == cudaSuccess) error = load_exclusive_sum<uint32_t>();
  if (error == cudaSuccess) error = load(write_dictionaries_of_blocks);
  return error != cudaSuccess ? error : load(move_words);
}

shardrec_cuda_error find_repeats(shardrec_cuda_stream* stream,
                                 shardrec_cuda_repeat_search* search) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_repeat_search& job = *search;
  size_t bytes = job.room_bytes;
  const auto number_firsts = [&] {
    return exclusive_sum(job.room, bytes, job.firsts_before, job.firsts_before, job.ids,
                         stream->commands);
  };
  if (job.room == nullptr) {
    const cudaError_t error = number_firsts();
    job.room_bytes = bytes;
    return error;
  }
  cudaError_t error = launch(find_slots_of_ids, job.tiles.count, 0, stream->commands, job);
  if (error == cudaSuccess) {
    error = launch(find_places_of_ids, job.tiles.count, 0, stream->commands, job);
  }
  return error != cudaSuccess ? error : number_firsts();
}

shardrec_cuda_error write_dictionaries(shardrec_cuda_stream* stream,
                                       const shardrec_cuda_dictionary_writing* writing) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const cudaError_t error =
      launch(write_dictionaries_of_blocks, writing->id_tiles.count, 0, stream->commands, *writing);
  if (error != cudaSuccess) return error;
  return launch(move_words, writing->word_tiles.count, 0, stream->commands, *writing);
}

}  // namespace shardrec::compute::cuda
