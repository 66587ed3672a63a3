#include "compute/cuda/kernels/rows/row_update_kernels.h"

namespace shardrec::compute::cuda {

template <>
RowKernel row_update_kernel<OptimizerKind::kSgd>(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::Sgd>(kind);
}

template <>
RowKernel row_update_kernel<OptimizerKind::kLarsSgd>(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::LarsSgd>(kind);
}

}  // namespace shardrec::compute::cuda
