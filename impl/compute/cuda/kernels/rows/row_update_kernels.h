// The kernels of one optimizer, by kind of row.
#pragma once

#include "compute/cuda/kernels/rows/row_kernels.h"
#include "compute/cuda/kernels/rows/row_update.h"

namespace shardrec::compute::cuda {

template <class Row, template <WeightDecay> class OfDecay>
RowKernel update_kernel(const shardrec_cuda_row_kind& kind) {
  static_assert(sizeof(UpdateShared<Row, OfDecay>) <= 48 * 1024, "more has to be asked for");
  return {kind.wide != 0 ? update_rows<Row, OfDecay, true> : update_rows<Row, OfDecay, false>,
          sizeof(UpdateShared<Row, OfDecay>)};
}

template <template <WeightDecay> class OfDecay>
RowKernel update_kernel_of(const shardrec_cuda_row_kind& kind) {
  if (kind.vectors == 0) return update_kernel<SingleColumn, OfDecay>(kind);
  switch (kind.element) {
    case SHARDREC_CUDA_FLOAT16:
      return update_kernel<Float16Columns, OfDecay>(kind);
    case SHARDREC_CUDA_BFLOAT16:
      return update_kernel<Bfloat16Columns, OfDecay>(kind);
    default:
      return update_kernel<Float32Columns, OfDecay>(kind);
  }
}

}  // namespace shardrec::compute::cuda
