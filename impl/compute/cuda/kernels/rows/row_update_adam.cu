#include "compute/cuda/kernels/rows/row_update_kernels.h"

namespace shardrec::compute::cuda {

template <>
RowKernel row_update_kernel<OptimizerKind::kAdam>(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::Adam>(kind);
}

template <>
RowKernel row_update_kernel<OptimizerKind::kPartialRowwiseAdam>(
    const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::PartialRowwiseAdam>(kind);
}

}  // namespace shardrec::compute::cuda
