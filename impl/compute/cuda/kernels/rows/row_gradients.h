// The gradients of touched rows (Kernels::row_gradients): a group of lanes for each.
#pragma once

#include "compute/cuda/kernels/rows/row_job.h"

namespace shardrec::compute::cuda {

struct GradientShared {
  BlockJob job;
  WarpRows warp[kWarps];
};

template <int kColumns>
SHARDREC_KERNEL(3)
write_gradients(const shardrec_cuda_row_job* jobs, const int64_t* first_block, int32_t count) {
  auto& block = shared<GradientShared>();
  const int64_t first = block.job.read(jobs, first_block, count);
  const int rows = block.job.rows_from(first);
  if (rows <= 0) return;
  const shardrec_cuda_row_job& job = block.job.job;
  WarpRows& own = block.warp[warp_index()];
  read_rows(job.touched, first, rows, own);
  const LaneGroup group = lane_group(job.lanes);
  for (int r = group.number; r < rows; r += group.groups) {
    float* const out = job.out + (first + r) * job.out_stride;
    for (int at = group.lane * kColumns; at < job.columns; at += job.lanes * kColumns) {
      float sum[kColumns];
      const TouchedRow& row = own.row[r];
      if (has_several(row)) {
        sum_gradient(job.touched, own, row, job.first_column + at, sum);
      } else {
        load_gradient(own, row, job.first_column + at, sum);
        sum_first(job.touched, row, sum);
      }
      LaneFloats<kColumns>::store(out + at, sum);
    }
  }
}

}  // namespace shardrec::compute::cuda
