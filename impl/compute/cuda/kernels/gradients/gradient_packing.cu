#include "compute/cuda/kernels/gradients/gradient_packing.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

using Kernel = void (*)(const shardrec_cuda_gradients*, const int64_t*, int32_t);

Kernel kernel_of(int32_t element, bool vectors) {
  switch (element) {
    case SHARDREC_CUDA_FLOAT16:
      return vectors ? pack_gradients<Float16Vector> : pack_gradients<Float16Single>;
    case SHARDREC_CUDA_BFLOAT16:
      return vectors ? pack_gradients<Bfloat16Vector> : pack_gradients<Bfloat16Single>;
    default:
      return vectors ? pack_gradients<Float32Vector> : pack_gradients<Float32Single>;
  }
}

}  // namespace

shardrec_cuda_error load_gradient_packing() {
  for (const int32_t element :
       {SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_FLOAT16, SHARDREC_CUDA_BFLOAT16}) {
    for (const bool vectors : {false, true}) {
      const cudaError_t error = load(kernel_of(element, vectors));
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

shardrec_cuda_error pack_output_gradients(shardrec_cuda_stream* stream, int32_t element,
                                          int32_t vectors, const shardrec_cuda_gradients* jobs,
                                          const int64_t* first_block, int32_t count,
                                          int64_t blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(kernel_of(element, vectors != 0), blocks, sizeof(PackedItems), stream->commands,
                jobs, first_block, count);
}

}  // namespace shardrec::compute::cuda
