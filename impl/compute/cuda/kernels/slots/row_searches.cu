#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/slots/row_searches.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_row_searches() { return load(find_row_bounds); }

shardrec_cuda_error find_rows(shardrec_cuda_stream* stream,
                              const shardrec_cuda_row_search* search) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(find_row_bounds, blocks_for(search->count), 0, stream->commands, *search);
}

}  // namespace shardrec::compute::cuda
