// The kernels of one optimizer, by kind of row.
#pragma once

#include "compute/cuda/kernels/rows/row_kernels.h"
#include "compute/cuda/kernels/rows/row_update.h"

namespace shardrec::compute::cuda {

template <class Row, template <WeightDecay> class OfDecay>
RowKernel update_kernel() {
  return {update_rows<Row, OfDecay>, sizeof(UpdateShared<Row, OfDecay>)};
}

template <template <WeightDecay> class OfDecay>
RowKernel update_kernel_of(const shardrec_cuda_row_kind& kind) {
  if (kind.vectors == 0) return update_kernel<SingleColumn, OfDecay>();
  switch (kind.element) {
    case SHARDREC_CUDA_FLOAT16:
      return update_kernel<Float16Columns, OfDecay>();
    case SHARDREC_CUDA_BFLOAT16:
      return update_kernel<Bfloat16Columns, OfDecay>();
    default:
      return update_kernel<Float32Columns, OfDecay>();
  }
}

}  // namespace shardrec::compute::cuda
