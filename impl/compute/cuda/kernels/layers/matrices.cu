#include <initializer_list>

#include "compute/cuda/kernels/layers/matrices.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

bool is_compact(const shardrec_cuda_matrix& matrix) {
  return matrix.stride == matrix.cols || matrix.rows <= 1;
}

void make_one_row(shardrec_cuda_matrix& matrix) {
  if (matrix.data == nullptr) return;
  matrix.cols *= matrix.rows;
  matrix.rows = 1;
}

bool all_fit_vectors(std::initializer_list<const shardrec_cuda_matrix*> matrices) {
  for (const shardrec_cuda_matrix* matrix : matrices) {
    if (matrix->data != nullptr && !fits_vectors(*matrix)) return false;
  }
  return true;
}

// Matrices without gaps, of which no element depends on its column, are one row.
void join_rows(std::initializer_list<shardrec_cuda_matrix*> matrices) {
  for (const shardrec_cuda_matrix* matrix : matrices) {
    if (matrix->data != nullptr && !is_compact(*matrix)) return;
  }
  for (shardrec_cuda_matrix* matrix : matrices) make_one_row(*matrix);
}

}  // namespace

shardrec_cuda_error load_matrices() {
  for (const auto load_job : {load_for_elements<AddBias>, load_for_elements<MaskGradients>,
                              load_for_elements<AddMatrix>, load_for_elements<FillNumbers>,
                              load_for_elements<CrossRows>, load_for_elements<CrossGradients>}) {
    const cudaError_t error = load_job();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

shardrec_cuda_error add_bias(shardrec_cuda_stream* stream, const shardrec_cuda_bias* bias) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch_for_elements(AddBias{*bias}, bias->y,
                             all_fit_vectors({&bias->y}) && fits_vectors(bias->bias),
                             stream->commands);
}

shardrec_cuda_error mask_gradients(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_relu_gradient* gradient) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_relu_gradient job = *gradient;
  join_rows({&job.y, &job.dy, &job.dz});
  return launch_for_elements(MaskGradients{job}, job.y, all_fit_vectors({&job.y, &job.dy, &job.dz}),
                             stream->commands);
}

shardrec_cuda_error add_matrix(shardrec_cuda_stream* stream,
                               const shardrec_cuda_addition* addition) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_addition job = *addition;
  join_rows({&job.x, &job.sum});
  return launch_for_elements(AddMatrix{job}, job.x, all_fit_vectors({&job.x, &job.sum}),
                             stream->commands);
}

shardrec_cuda_error fill_numbers(shardrec_cuda_stream* stream,
                                 const shardrec_cuda_filling* filling) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_filling job = *filling;
  join_rows({&job.x});
  return launch_for_elements(FillNumbers{job}, job.x, all_fit_vectors({&job.x}), stream->commands);
}

shardrec_cuda_error cross_rows(shardrec_cuda_stream* stream, const shardrec_cuda_cross* cross) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch_for_elements(
      CrossRows{*cross}, cross->x,
      all_fit_vectors({&cross->origin, &cross->x, &cross->product, &cross->y}) &&
          fits_vectors(cross->bias),
      stream->commands);
}

shardrec_cuda_error cross_gradients(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_cross_gradient* gradient) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_cross_gradient job = *gradient;
  join_rows({&job.origin, &job.product, &job.dy, &job.dz, &job.sum});
  return launch_for_elements(
      CrossGradients{job}, job.dy,
      all_fit_vectors({&job.origin, &job.product, &job.dy, &job.dz, &job.sum}), stream->commands);
}

}  // namespace shardrec::compute::cuda
