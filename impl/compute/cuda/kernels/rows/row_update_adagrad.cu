#include "compute/cuda/kernels/rows/row_update_kernels.h"

namespace shardrec::compute::cuda {

template <>
RowKernel row_update_kernel<OptimizerKind::kAdagrad>(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::Adagrad>(kind);
}

template <>
RowKernel row_update_kernel<OptimizerKind::kRowwiseAdagrad>(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::RowwiseAdagrad>(kind);
}

}  // namespace shardrec::compute::cuda
