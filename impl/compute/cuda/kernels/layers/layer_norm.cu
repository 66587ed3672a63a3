#include "compute/cuda/kernels/layers/layer_norm.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

int64_t norm_blocks(const shardrec_cuda_matrix& x) {
  return x.cols == 0 ? 0 : (x.rows + kNormRows - 1) / kNormRows;
}

template <class In, class Out>
cudaError_t load_norm() {
  const cudaError_t error = load(normalize_each_row<In, Out>);
  return error != cudaSuccess ? error : load(normalize_each_gradient<In, Out>);
}

}  // namespace

shardrec_cuda_error load_layer_norm() {
  return load_for_each_pair([]<class In, class Out>(In, Out) { return load_norm<In, Out>(); });
}

shardrec_cuda_error normalize_rows(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_layer_norm* norm) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return with_elements(norm->x, norm->y, [&]<class In, class Out>(In, Out) {
    return launch(normalize_each_row<In, Out>, norm_blocks(norm->x), 0, stream->commands, *norm);
  });
}

shardrec_cuda_error normalize_gradients(shardrec_cuda_stream* stream,
                                        const shardrec_cuda_layer_norm_gradient* gradient) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return with_elements(gradient->dy, gradient->dx, [&]<class In, class Out>(In, Out) {
    return launch(normalize_each_gradient<In, Out>, norm_blocks(gradient->x), 0, stream->commands,
                  *gradient);
  });
}

}  // namespace shardrec::compute::cuda
