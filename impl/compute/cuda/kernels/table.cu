// The plug-in's one function (cuda_plugin.h).
#include <cuda_runtime.h>

#include "compute/cuda/kernels/operations.h"
#include "compute/cuda/kernels/ranges.h"
#include "compute/cuda/kernels/runtime.h"

#define SHARDREC_TEXT(x) SHARDREC_TEXT_OF(x)
#define SHARDREC_TEXT_OF(x) #x

namespace shardrec::compute::cuda {

shardrec_cuda_error load_kernels() {
#define SHARDREC_CUDA_LIST(name) name,
  for (const auto load : {SHARDREC_CUDA_LOADERS(SHARDREC_CUDA_LIST)}) {
#undef SHARDREC_CUDA_LIST
    const shardrec_cuda_error error = load();
    if (error != SHARDREC_CUDA_OK) return error;
  }
  return SHARDREC_CUDA_OK;
}

}  // namespace shardrec::compute::cuda

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_cuda_plugin(shardrec_cuda_table* table) {
  const bool same = table->size == sizeof *table && table->abi == SHARDREC_CUDA_ABI;
  table->size = sizeof *table;
  table->abi = SHARDREC_CUDA_ABI;
  if (!same) return SHARDREC_CUDA_ABI_MISMATCH;
#if defined(__CUDACC__)
  table->library =
      "CUDA " SHARDREC_TEXT(__CUDACC_VER_MAJOR__) "." SHARDREC_TEXT(__CUDACC_VER_MINOR__);
#else
  table->library = "CUDA on the CPU";
#endif
  shardrec::compute::cuda::add_runtime(*table);
  table->begin_range = shardrec::compute::cuda::begin_range;
  table->end_range = shardrec::compute::cuda::end_range;
#define SHARDREC_CUDA_FILL(name, ...) table->name = shardrec::compute::cuda::name;
  SHARDREC_CUDA_OPERATIONS(SHARDREC_CUDA_FILL)
#undef SHARDREC_CUDA_FILL
  return SHARDREC_CUDA_FILLED;
}
