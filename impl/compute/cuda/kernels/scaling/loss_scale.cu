#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/scaling/loss_scale.h"
#include "compute/cuda/kernels/scaling/unscaling.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {

shardrec_cuda_error load_loss_scale() {
  cudaError_t error = load_for_elements<UnscaleMatrix>();
  if (error == cudaSuccess) error = load_for_elements<InspectNumbers>();
  if (error == cudaSuccess) error = load(adapt_loss_scale);
  return error != cudaSuccess ? error : load(open_scaled_step);
}

shardrec_cuda_error unscale_matrix(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_unscaling* unscaling) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const bool vectors = fits_vectors(unscaling->x) && fits_vectors(unscaling->y);
  return launch_for_elements(UnscaleMatrix{*unscaling}, unscaling->x, vectors, stream->commands);
}

shardrec_cuda_error inspect_numbers(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_inspection* inspection) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const shardrec_cuda_matrix row{.data = const_cast<float*>(inspection->numbers),
                                 .rows = 1,
                                 .cols = inspection->count,
                                 .stride = inspection->count,
                                 .element = SHARDREC_CUDA_FLOAT32};
  return launch_for_elements(InspectNumbers{*inspection}, row, fits_vectors(row), stream->commands);
}

shardrec_cuda_error end_scaled_backward(shardrec_cuda_stream* stream,
                                        const shardrec_cuda_scaled_backward* backward) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(adapt_loss_scale, 1, 0, stream->commands, *backward);
}

shardrec_cuda_error begin_scaled_step(shardrec_cuda_stream* stream,
                                      const shardrec_cuda_scaled_step* step) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(open_scaled_step, 1, 0, stream->commands, *step);
}

}  // namespace shardrec::compute::cuda
