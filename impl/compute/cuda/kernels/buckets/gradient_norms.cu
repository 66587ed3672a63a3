#include "compute/cuda/kernels/buckets/gradient_norms.h"
#include "compute/cuda/kernels/commands.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

// The functions of one type of elements.
struct GradientKernels {
  void (*squares)(shardrec_cuda_norm_blocks);
  void (*largest)(shardrec_cuda_norm_blocks);
  void (*not_finite)(shardrec_cuda_non_finite);
};

template <class Number>
constexpr GradientKernels kGradientKernels{sum_squares<Number>, find_largest<Number>,
                                           find_not_finite<Number>};

GradientKernels kernels_for(int32_t element) {
  switch (element) {
    case SHARDREC_CUDA_FLOAT64:
      return kGradientKernels<Float64Number>;
    case SHARDREC_CUDA_FLOAT16:
      return kGradientKernels<Float16Number>;
    case SHARDREC_CUDA_BFLOAT16:
      return kGradientKernels<Bfloat16Number>;
    default:
      return kGradientKernels<Float32Number>;
  }
}

}  // namespace

shardrec_cuda_error load_gradient_norms() {
  constexpr int32_t kElements[] = {SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_FLOAT16,
                                   SHARDREC_CUDA_BFLOAT16, SHARDREC_CUDA_FLOAT64};
  for (const int32_t element : kElements) {
    const GradientKernels kernels = kernels_for(element);
    cudaError_t error = load(kernels.squares);
    if (error == cudaSuccess) error = load(kernels.largest);
    if (error == cudaSuccess) error = load(kernels.not_finite);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

shardrec_cuda_error sum_norm_blocks(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_norm_blocks* norm) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const GradientKernels kernels = kernels_for(norm->list.element);
  const int64_t blocks =
      (norm->list.units + SHARDREC_CUDA_NORMS_AT_ONCE - 1) / SHARDREC_CUDA_NORMS_AT_ONCE;
  return launch(norm->largest != 0 ? kernels.largest : kernels.squares, blocks, 0, stream->commands,
                *norm);
}

shardrec_cuda_error find_non_finite(shardrec_cuda_stream* stream,
                                    const shardrec_cuda_non_finite* search) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(kernels_for(search->list.element).not_finite, search->list.units, 0,
                stream->commands, *search);
}

}  // namespace shardrec::compute::cuda
