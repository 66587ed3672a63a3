#include "compute/cuda/kernels/layers/dropout.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

template <class In, class Out>
cudaError_t load_drop() {
  const cudaError_t error = load(for_each_element<kQuad, DropQuads<In, Out>>);
  return error != cudaSuccess ? error : load(drop_each_element<In, Out>);
}

template <class In, class Out>
cudaError_t drop(const shardrec_cuda_dropout& dropout, CommandList& commands) {
  const shardrec_cuda_matrix& x = dropout.x;
  if (fits_vectors(x) && fits_vectors(dropout.y)) {
    const ElementGrid grid = grid_of(x.rows, x.cols, kQuad);
    return launch(for_each_element<kQuad, DropQuads<In, Out>>, blocks_of(grid), 0, commands,
                  DropQuads<In, Out>{dropout}, grid);
  }
  const int64_t quads = (x.rows * x.cols + kQuad - 1) / kQuad;
  return launch(drop_each_element<In, Out>, blocks_for(quads), 0, commands, dropout);
}

}  // namespace

shardrec_cuda_error load_dropout() {
  return load_for_each_pair([]<class In, class Out>(In, Out) { return load_drop<In, Out>(); });
}

shardrec_cuda_error drop_elements(shardrec_cuda_stream* stream,
                                  const shardrec_cuda_dropout* dropout) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  if (dropout->x.rows == 0 || dropout->x.cols == 0) return cudaSuccess;
  return with_elements(dropout->x, dropout->y, [&]<class In, class Out>(In, Out) {
    return drop<In, Out>(*dropout, stream->commands);
  });
}

}  // namespace shardrec::compute::cuda
