#include "compute/cuda/kernels/rows/row_gradients.h"
#include "compute/cuda/kernels/rows/row_kernels.h"

namespace shardrec::compute::cuda {

RowKernel row_gradient_kernel(const shardrec_cuda_row_kind& kind) {
  return {kind.vectors != 0 ? write_gradients<SHARDREC_CUDA_LANE_COLUMNS> : write_gradients<1>,
          sizeof(GradientShared)};
}

}  // namespace shardrec::compute::cuda
