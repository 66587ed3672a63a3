#include "compute/cuda/kernels/rows/row_update_kernels.h"

namespace shardrec::compute::cuda {

RowKernel adam_kernel(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::Adam>(kind);
}

RowKernel partial_rowwise_adam_kernel(const shardrec_cuda_row_kind& kind) {
  return update_kernel_of<math::PartialRowwiseAdam>(kind);
}

}  // namespace shardrec::compute::cuda
