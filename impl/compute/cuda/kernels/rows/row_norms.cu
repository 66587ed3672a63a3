#include "compute/cuda/kernels/rows/row_kernels.h"
#include "compute/cuda/kernels/rows/row_norms.h"

namespace shardrec::compute::cuda {
namespace {

template <class Row>
RowKernel norm_kernel() {
  return {sum_row_norms<Row>, sizeof(NormShared)};
}

template <class Row>
RowKernel rescale_kernel() {
  return {rescale_long_rows<Row>, sizeof(BlockJob)};
}

}  // namespace

RowKernel row_norm_kernel(const shardrec_cuda_row_kind& kind) {
  if (kind.vectors == 0) return norm_kernel<SingleColumn>();
  switch (kind.element) {
    case SHARDREC_CUDA_FLOAT16:
      return norm_kernel<Float16Columns>();
    case SHARDREC_CUDA_BFLOAT16:
      return norm_kernel<Bfloat16Columns>();
    default:
      return norm_kernel<Float32Columns>();
  }
}

RowKernel row_rescale_kernel(const shardrec_cuda_row_kind& kind) {
  if (kind.vectors == 0) return rescale_kernel<SingleColumn>();
  switch (kind.element) {
    case SHARDREC_CUDA_FLOAT16:
      return rescale_kernel<Float16Columns>();
    case SHARDREC_CUDA_BFLOAT16:
      return rescale_kernel<Bfloat16Columns>();
    default:
      return rescale_kernel<Float32Columns>();
  }
}

}  // namespace shardrec::compute::cuda
