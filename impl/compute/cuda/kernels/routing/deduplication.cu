#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/routing/deduplication.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_deduplication() {
  cudaError_t error = load(find_slots_of_ids);
  if (error == cudaSuccess) error = load(find_places_of_ids);
  if (error == cudaSuccess) error = load(write_dictionaries_of_blocks);
  return error != cudaSuccess ? error : load(move_words);
}

shardrec_cuda_error find_repeats(shardrec_cuda_stream* stream,
                                 const shardrec_cuda_repeat_search* search) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const int64_t blocks = search->tiles.count;
  const cudaError_t error = launch(find_slots_of_ids, blocks, 0, stream->commands, *search);
  if (error != cudaSuccess) return error;
  return launch(find_places_of_ids, blocks, sizeof(ScanMemory), stream->commands, *search);
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
