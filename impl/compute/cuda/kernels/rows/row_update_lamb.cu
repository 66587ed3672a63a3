#include "compute/cuda/kernels/rows/row_update_kernels.h"

namespace shardrec::compute::cuda {

RowKernel lamb_kernel(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::Lamb>(kind);
}

RowKernel partial_rowwise_lamb_kernel(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::PartialRowwiseLamb>(kind);
}

}  // namespace shardrec::compute::cuda
