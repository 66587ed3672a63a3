#include <utility>

#include "compute/cuda/kernels/lookup/lookup.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

using Kernel = void (*)(const shardrec_cuda_lookup*, const int64_t*, int32_t);

template <class Vector, class Single>
Kernel kernel_of(const shardrec_cuda_lookup_kind& kind) {
  if (kind.vectors == 0) return look_up<Single, false>;
  return kind.plain != 0 ? look_up<Vector, true> : look_up<Vector, false>;
}

Kernel kernel_of(const shardrec_cuda_lookup_kind& kind) {
  switch (kind.element) {
    case SHARDREC_CUDA_FLOAT16:
      return kernel_of<Float16Vector, Float16Single>(kind);
    case SHARDREC_CUDA_BFLOAT16:
      return kernel_of<Bfloat16Vector, Bfloat16Single>(kind);
    default:
      return kernel_of<Float32Vector, Float32Single>(kind);
  }
}

}  // namespace

shardrec_cuda_error load_lookups() {
  for (const int32_t element :
       {SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_FLOAT16, SHARDREC_CUDA_BFLOAT16}) {
    for (const auto& [vectors, plain] : {std::pair{0, 0}, {1, 0}, {1, 1}}) {
      const cudaError_t error = load(kernel_of({element, vectors, plain}));
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

shardrec_cuda_error look_up(shardrec_cuda_stream* stream, const shardrec_cuda_lookup_kind* kind,
                            const shardrec_cuda_lookup* lookups, const int64_t* first_block,
                            int32_t count, int64_t blocks) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  return launch(kernel_of(*kind), blocks, sizeof(ItemOffsets), stream->commands, lookups,
                first_block, count);
}

}  // namespace shardrec::compute::cuda
