#include "compute/cuda/kernels/buckets/rank_sums.h"
#include "compute/cuda/kernels/commands.h"
#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/stream.h"

namespace shardrec::compute::cuda {
namespace {

using SumKernel = void (*)(shardrec_cuda_rank_sum);

template <class From, class To>
SumKernel kernel_for(bool one_input) {
  return one_input ? add_rank_inputs<From, To, true> : add_rank_inputs<From, To, false>;
}

template <class From>
SumKernel kernel_from(int32_t to, bool one_input) {
  return to == SHARDREC_CUDA_FLOAT32 ? kernel_for<From, Float32Number>(one_input)
                                     : kernel_for<From, From>(one_input);
}

// Null: nobody asks for it.
SumKernel kernel_of(int32_t from, int32_t to, bool one_input) {
  const bool same = from == to;
  switch (from) {
    case SHARDREC_CUDA_FLOAT64:
      return same ? kernel_for<Float64Number, Float64Number>(one_input) : nullptr;
    case SHARDREC_CUDA_FLOAT16:
      return kernel_from<Float16Number>(to, one_input);
    case SHARDREC_CUDA_BFLOAT16:
      return kernel_from<Bfloat16Number>(to, one_input);
    default:
      break;
  }
  if (same) return kernel_for<Float32Number, Float32Number>(one_input);
  if (!one_input) return nullptr;
  return to == SHARDREC_CUDA_FLOAT16 ? add_rank_inputs<Float32Number, Float16Number, true>
                                     : add_rank_inputs<Float32Number, Bfloat16Number, true>;
}

}  // namespace

shardrec_cuda_error load_rank_sums() {
  constexpr int32_t kPairs[][2] = {{SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_FLOAT32},
                                   {SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_FLOAT16},
                                   {SHARDREC_CUDA_FLOAT32, SHARDREC_CUDA_BFLOAT16},
                                   {SHARDREC_CUDA_FLOAT16, SHARDREC_CUDA_FLOAT32},
                                   {SHARDREC_CUDA_FLOAT16, SHARDREC_CUDA_FLOAT16},
                                   {SHARDREC_CUDA_BFLOAT16, SHARDREC_CUDA_FLOAT32},
                                   {SHARDREC_CUDA_BFLOAT16, SHARDREC_CUDA_BFLOAT16},
                                   {SHARDREC_CUDA_FLOAT64, SHARDREC_CUDA_FLOAT64}};
  for (const auto& pair : kPairs) {
    for (const bool one_input : {false, true}) {
      const SumKernel kernel = kernel_of(pair[0], pair[1], one_input);
      if (kernel == nullptr) continue;
      const cudaError_t error = load(kernel);
      if (error != cudaSuccess) return error;
    }
  }
  return cudaSuccess;
}

shardrec_cuda_error add_ranks(shardrec_cuda_stream* stream, const shardrec_cuda_rank_sum* sum) {
  const CurrentDevice device(stream->device);
  if (device.error() != cudaSuccess) return device.error();
  const SumKernel kernel = kernel_of(sum->from, sum->to, sum->addends == 1);
  if (kernel == nullptr) return cudaErrorInvalidValue;
  return launch(kernel, sum->blocks, 0, stream->commands, *sum);
}

}  // namespace shardrec::compute::cuda
