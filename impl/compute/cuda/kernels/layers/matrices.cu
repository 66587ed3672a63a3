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

template <class Elements, class Outputs>
cudaError_t load_of_both() {
  for (const auto load_job : {load_for_elements<MaskGradients<Elements, Outputs>>,
                              load_for_elements<CrossRows<Elements, Outputs>>}) {
    const cudaError_t error = load_job();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

shardrec_cuda_error load_matrices() {
  using F = Float32Elements;
  using B = Bfloat16Elements;
  for (const auto load_job :
       {load_for_elements<AddBias<F>>, load_for_elements<AddBias<B>>,
        load_for_elements<AddMatrix<F, F>>, load_for_elements<AddMatrix<F, B>>,
        load_for_elements<AddMatrix<B, F>>, load_for_elements<AddMatrix<B, B>>,
        load_for_elements<ConvertMatrix<F, B>>, load_for_elements<ConvertMatrix<B, F>>,
        load_for_elements<FillNumbers>, load_for_elements<CrossGradients<F>>,
        load_for_elements<CrossGradients<B>>, load_of_both<F, F>, load_of_both<B, B>,
        load_of_both<B, F>}) {
    const cudaError_t error = load_job();
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
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
  return with_elements(job.x, [&]<class Added>(Added) {
    return with_elements(job.sum, [&]<class Sum>(Sum) {
      return launch_for_elements(AddMatrix<Added, Sum>{job}, job.x,
                                 all_fit_vectors({&job.x, &job.sum}), stream->commands);
    });
  });
}

shardrec_cuda_error convert_matrix(shardrec_cuda_stream* stream,
                                   const shardrec_cuda_conversion* conversion) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  shardrec_cuda_conversion job = *conversion;
  if (job.x.element == job.y.element) return cudaErrorInvalidValue;
  join_rows({&job.x, &job.y});
  const bool vectors = all_fit_vectors({&job.x, &job.y});
  if (job.y.element == SHARDREC_CUDA_BFLOAT16) {
    return launch_for_elements(ConvertMatrix<Float32Elements, Bfloat16Elements>{job}, job.x,
                               vectors, stream->commands);
  }
  return launch_for_elements(ConvertMatrix<Bfloat16Elements, Float32Elements>{job}, job.x, vectors,
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
