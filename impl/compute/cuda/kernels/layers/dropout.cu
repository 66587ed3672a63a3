#include "compute/cuda/kernels/layers/dropout.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_dropout() {
  const cudaError_t error = load(for_each_element<kQuad, DropQuads>);
  return error != cudaSuccess ? error : load(drop_each_element);
}

shardrec_cuda_error drop_elements(shardrec_cuda_stream* stream,
                                  const shardrec_cuda_dropout* dropout) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const shardrec_cuda_matrix& x = dropout->x;
  if (x.rows == 0 || x.cols == 0) return cudaSuccess;
  if (fits_vectors(x) && fits_vectors(dropout->y)) {
    const ElementGrid grid = grid_of(x.rows, x.cols, kQuad);
    return launch(for_each_element<kQuad, DropQuads>, blocks_of(grid), 0, stream->commands,
                  DropQuads{*dropout}, grid);
  }
  const int64_t quads = (x.rows * x.cols + kQuad - 1) / kQuad;
  return launch(drop_each_element, blocks_for(quads), 0, stream->commands, *dropout);
}

}  // namespace shardrec::compute::cuda
