#include "compute/cuda/kernels/rows/row_update_kernels.h"

namespace shardrec::compute::cuda {

RowKernel sgd_kernel(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::Sgd>(kind);
}

RowKernel lars_sgd_kernel(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::LarsSgd>(kind);
}

}  // namespace shardrec::compute::cuda
