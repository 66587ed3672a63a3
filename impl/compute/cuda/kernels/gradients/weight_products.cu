#include "compute/cuda/kernels/gradients/weight_products.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

using ProductKernel = void (*)(const shardrec_cuda_weight_products*, const int64_t*, int32_t);

ProductKernel product_kernel_of(int32_t element, bool vectors) {
  switch (element) {
    case SHARDREC_CUDA_FLOAT16:
      return vectors ? multiply_rows<Float16Vector> : multiply_rows<Float16Single>;
    case SHARDREC_CUDA_BFLOAT16:
      return vectors ? multiply_rows<Bfloat16Vector> : multiply_rows<Bfloat16Single>;
    default:
      return vectors ? multiply_rows<Float32Vector> : multiply_rows<Float32Single>;
  }
}

}  // namespace

shardrec_cuda_error load_weight_products() {
  for (const int32_t element :
       {SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_FLOAT16, SHARDREC_CUDA_BFLOAT16}) {
    for (const bool vectors : {false, true}) {
      const cudaError_t error = load(product_kernel_of(element, vectors));
      if (error != cudaSuccess) return error;
    }
  }
  const cudaError_t error = load(mark_parts);
  return error != cudaSuccess ? error : load(add_products);
}

shardrec_cuda_error take_products(shardrec_cuda_stream* stream, int32_t element, int32_t vectors,
                                  const shardrec_cuda_weight_products* jobs,
                                  const int64_t* first_block, int32_t count, int64_t blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(product_kernel_of(element, vectors != 0), blocks, 0, stream->commands, jobs,
                first_block, count);
}

shardrec_cuda_error mark_product_parts(shardrec_cuda_stream* stream,
                                       const shardrec_cuda_weight_gradients* jobs,
                                       const int64_t* first_word, int32_t count, int64_t words) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(mark_parts, blocks_for(words * kWarp), 0, stream->commands, jobs, first_word,
                count);
}

shardrec_cuda_error sum_products(shardrec_cuda_stream* stream,
                                 const shardrec_cuda_weight_gradients* jobs,
                                 const int64_t* first_block, int32_t count, int64_t blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(add_products, blocks, 0, stream->commands, jobs, first_block, count);
}

}  // namespace shardrec::compute::cuda
