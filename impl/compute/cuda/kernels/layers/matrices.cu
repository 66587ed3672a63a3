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

template <class... Jobs>
cudaError_t load_jobs() {
  cudaError_t error = cudaSuccess;
  ((error = error != cudaSuccess ? error : load_for_elements<Jobs>()), ...);
  return error;
}

// Sums of a matrix of 16 bits and one of floats, and what makes one of the other.
template <class Half>
cudaError_t load_with_floats() {
  using Floats = Float32Elements;
  return load_jobs<AddMatrix<Floats, Half>, AddMatrix<Half, Floats>, ConvertMatrix<Floats, Half>,
                   ConvertMatrix<Half, Floats>>();
}

// The matrix of 16 bits, where one of two is of floats.
const shardrec_cuda_matrix& narrow_one(const shardrec_cuda_matrix& x,
                                       const shardrec_cuda_matrix& y) {
  return x.element == SHARDREC_CUDA_FLOAT32 ? y : x;
}

}  // namespace

shardrec_cuda_error load_matrices() {
  cudaError_t error = load_jobs<FillNumbers>();
  if (error == cudaSuccess) error = load_with_floats<Float16Elements>();
  if (error == cudaSuccess) error = load_with_floats<Bfloat16Elements>();
  if (error == cudaSuccess) {
    error = load_for_each_type([]<class Elements>(Elements) {
      return load_jobs<AddBias<Elements>, AddMatrix<Elements, Elements>,
                       CrossGradients<Elements>>();
    });
  }
  if (error != cudaSuccess) return error;
  return load_for_each_pair([]<class Elements, class Outputs>(Elements, Outputs) {
    return load_jobs<MaskGradients<Elements, Outputs>, CrossRows<Elements, Outputs>>();
  });
}

shardrec_cuda_error add_bias(shardrec_cuda_stream* stream, const shardrec_cuda_bias* bias) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return with_elements(bias->y, [&]<class Elements>(Elements) {
    return launch_for_elements(AddBias<Elements>{*bias}, bias->y,
                               all_fit_vectors({&bias->y}) && fits_vectors(bias->bias),
                               stream->commands);
  });
}

shardrec_cuda_error mask_gradients(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_relu_gradient* gradient) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_relu_gradient job = *gradient;
  join_rows({&job.y, &job.dy, &job.dz});
  return with_elements(job.dy, job.y, [&]<class Gradients, class Outputs>(Gradients, Outputs) {
    return launch_for_elements(MaskGradients<Gradients, Outputs>{job}, job.y,
                               all_fit_vectors({&job.y, &job.dy, &job.dz}), stream->commands);
  });
}

shardrec_cuda_error add_matrix(shardrec_cuda_stream* stream,
                               const shardrec_cuda_addition* addition) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_addition job = *addition;
  join_rows({&job.x, &job.sum});
  const bool vectors = all_fit_vectors({&job.x, &job.sum});
  const auto add = [&]<class Added, class Sum>(Added, Sum) {
    return launch_for_elements(AddMatrix<Added, Sum>{job}, job.x, vectors, stream->commands);
  };
  if (job.x.element != SHARDREC_CUDA_FLOAT32) return with_elements(job.x, job.sum, add);
  return with_elements(job.sum, [&]<class Sum>(Sum) { return add(Float32Elements{}, Sum{}); });
}

shardrec_cuda_error convert_matrix(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_conversion* conversion) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_conversion job = *conversion;
  const bool rounds = job.x.element == SHARDREC_CUDA_FLOAT32;
  if (rounds == (job.y.element == SHARDREC_CUDA_FLOAT32)) return cudaErrorInvalidValue;
  join_rows({&job.x, &job.y});
  const bool vectors = all_fit_vectors({&job.x, &job.y});
  return with_elements(narrow_one(job.x, job.y), [&]<class Half>(Half) {
    if constexpr (std::is_same_v<Half, Float32Elements>) {
      return cudaErrorInvalidValue;
    } else {
      return rounds ? launch_for_elements(ConvertMatrix<Float32Elements, Half>{job}, job.x, vectors,
                                          stream->commands)
                    : launch_for_elements(ConvertMatrix<Half, Float32Elements>{job}, job.x, vectors,
                                          stream->commands);
    }
  });
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
  return with_elements(cross->x, cross->y, [&]<class Elements, class Outputs>(Elements, Outputs) {
    return launch_for_elements(
        CrossRows<Elements, Outputs>{*cross}, cross->x,
        all_fit_vectors({&cross->origin, &cross->x, &cross->product, &cross->y}) &&
            fits_vectors(cross->bias),
        stream->commands);
  });
}

shardrec_cuda_error cross_gradients(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_cross_gradient* gradient) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_cross_gradient job = *gradient;
  join_rows({&job.origin, &job.product, &job.dy, &job.dz, &job.sum});
  return with_elements(job.dy, [&]<class Elements>(Elements) {
    return launch_for_elements(
        CrossGradients<Elements>{job}, job.dy,
        all_fit_vectors({&job.origin, &job.product, &job.dy, &job.dz, &job.sum}), stream->commands);
  });
}

}  // namespace shardrec::compute::cuda
