#include "compute/cuda/kernels/bag_index.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_bag_index() { return load(index_bags_of_blocks); }

shardrec_cuda_error index_bags(shardrec_cuda_stream* stream,
                               const shardrec_cuda_bag_indexing* indexing) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(index_bags_of_blocks, indexing->tiles.count, sizeof(ScanMemory), stream->commands,
                *indexing);
}

}  // namespace shardrec::compute::cuda
