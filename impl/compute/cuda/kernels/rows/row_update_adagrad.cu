#include "compute/cuda/kernels/rows/row_update_kernels.h"

namespace shardrec::compute::cuda {

RowKernel adagrad_kernel(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::Adagrad>(kind);
}

RowKernel rowwise_adagrad_kernel(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::RowwiseAdagrad>(kind);
}

}  // namespace shardrec::compute::cuda
