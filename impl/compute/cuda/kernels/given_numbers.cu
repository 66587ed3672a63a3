#include "compute/cuda/kernels/commands.h"
#include "compute/cuda/kernels/given_numbers.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

using SearchKernel = void (*)(shardrec_cuda_given_numbers);

SearchKernel search_kernel_of(int32_t element) {
  switch (element) {
    case SHARDREC_CUDA_FLOAT16:
      return find_non_finite_number<Float16Single>;
    case SHARDREC_CUDA_BFLOAT16:
      return find_non_finite_number<Bfloat16Single>;
    default:
      return find_non_finite_number<Float32Single>;
  }
}

}  // namespace

shardrec_cuda_error load_given_numbers() {
  for (const int32_t element :
       {SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_FLOAT16, SHARDREC_CUDA_BFLOAT16}) {
    const cudaError_t error = load(search_kernel_of(element));
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

shardrec_cuda_error search_non_finite(shardrec_cuda_stream* stream,
                                      const shardrec_cuda_given_numbers* numbers) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const int64_t count = numbers->rows * numbers->columns;
  return launch(search_kernel_of(numbers->element), (count + kTile - 1) / kTile, 0,
                stream->commands, *numbers);
}

}  // namespace shardrec::compute::cuda
