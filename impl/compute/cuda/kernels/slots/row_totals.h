// Sums over whole rows (compute::RowTotals): a thread for each number.
#pragma once

#include "compute/cuda/jobs/slots.h"
#include "compute/cuda/kernels/tiles.h"

namespace shardrec::compute::cuda {

SHARDREC_KERNEL(8) add_rows_of_totals(shardrec_cuda_row_totals job) {
  const auto [t, begin] = own_tile(job.values);
  const shardrec_cuda_row_total& total = job.totals[t];
#pragma unroll 1
  for (int k = 0; k < kTileItems; ++k) {
    const int64_t i = begin + item_of_tile(k);
    if (i >= total.rows * total.values) break;
    const int64_t row = i / total.values;
    const int64_t value = i % total.values;
    float sum = 0;
    for (int64_t a = 0; a < total.addend_count; ++a) {
      const shardrec_cuda_row_addend& addend = total.addends[a];
      if (row < addend.first || row >= addend.last) continue;
      sum = __fadd_rn(sum, addend.sums[(row - addend.first) * addend.stride + value]);
    }
    total.out[i] = sum;
  }
}

}  // namespace shardrec::compute::cuda
