#include "compute/cuda/kernels/rows/row_update_kernels.h"

namespace shardrec::compute::cuda {

template <>
RowKernel row_update_kernel<OptimizerKind::kLamb>(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::Lamb>(kind);
}

template <>
RowKernel row_update_kernel<OptimizerKind::kPartialRowwiseLamb>(
    const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::PartialRowwiseLamb>(kind);
}

}  // namespace shardrec::compute::cuda
