// max_norm (Kernels::row_norms, row_rescale): the squared norms of stored rows, and rows that are too
// long brought to the longest allowed.
#pragma once

#include "compute/cuda/kernels/rows/column_sums.h"
#include "compute/cuda/kernels/rows/row_store.h"

namespace shardrec::compute::cuda {

inline constexpr int kMostGroups = kWarp / SHARDREC_CUDA_LEAST_ROW_LANES;

struct NormShared {
  BlockJob job;
  float numbers[kWarps][kMostGroups * kVirtualLanes];
};

// The rows of as many groups as the warp has; all of its lanes call it.
template <class Row>
SHARDREC_DEVICE void sum_squares(const shardrec_cuda_row_job& job, int64_t first, int rows,
                                 const LaneGroup& group, float* numbers) {
  const int of_tile = group.lanes * Row::kColumns;
  const int here = rows < group.groups ? rows : group.groups;
  const int64_t row = group.number < here ? global(job.touched.rows)[first + group.number] : 0;
  ColumnSums<1> sums;
  for (int tile = 0; tile < job.tiles; ++tile) {
    const int left = job.columns - tile * of_tile;
    const int columns = left < of_tile ? left : of_tile;
    const int column = group.lane * Row::kColumns;
    if (group.number < here && column < columns) {
      float w[Row::kColumns];
      Row::widen(Row::load(row_at(job, row), job.element, tile * of_tile + column), w);
      const int at = SummedRow(group.number, columns).at(column);
#pragma unroll
      for (int c = 0; c < Row::kColumns; ++c) numbers[at + c] = w[c];
    }
    __syncwarp();
    for (int i = 0; 2 * i < here; ++i) {
      const int of_row = ColumnSums<1>::row_of(i);
      if (tile == 0) sums.clear();
      if (of_row < here) {
        sums.add(SummedRow(of_row, columns), columns,
                 [&](int at, float* sum) { math::add_square(numbers[at], *sum); });
      }
      if (tile + 1 != job.tiles) continue;
      sums.finish();
      if (of_row < here && lane_index() % kVirtualLanes == 0) {
        global(job.out)[(first + of_row) * job.out_stride] = sums[0];
      }
    }
    __syncwarp();
  }
}

template <class Row>
SHARDREC_KERNEL(4)
sum_row_norms(const shardrec_cuda_row_job* jobs, const int64_t* first_block, int32_t count) {
  auto& block = shared<NormShared>();
  const int64_t first = block.job.read(jobs, first_block, count);
  const int rows = block.job.rows_from(first);
  const LaneGroup group = lane_group(block.job.job.lanes);
  for (int begin = 0; begin < rows; begin += group.groups) {
    sum_squares<Row>(block.job.job, first + begin, rows - begin, group,
                     block.numbers[warp_index()]);
  }
}

template <class Row>
SHARDREC_KERNEL(3)
rescale_long_rows(const shardrec_cuda_row_job* jobs, const int64_t* first_block, int32_t count) {
  auto& block = shared<BlockJob>();
  const int64_t first = block.read(jobs, first_block, count);
  const int rows = block.rows_from(first);
  const shardrec_cuda_row_job& job = block.job;
  const LaneGroup group = lane_group(job.lanes);
  for (int r = group.number; r < rows; r += group.groups) {
    const float norm = global(job.sums)[(first + r) * job.sums_stride];
    if (!math::is_too_long(job.step.max_norm, norm)) continue;
    const float factor = math::norm_factor(job.step.max_norm, norm);
    const int64_t row = global(job.touched.rows)[first + r];
    void* const begin = row_at(job, row);
    for (int at = group.lane * Row::kColumns; at < job.columns; at += job.lanes * Row::kColumns) {
      float w[Row::kColumns];
      Row::widen(Row::load(begin, job.element, at), w);
#pragma unroll
      for (int c = 0; c < Row::kColumns; ++c) w[c] = math::op::mul(w[c], factor);
      store_columns(Row{}, job, row, begin, at, w);
    }
  }
}

}  // namespace shardrec::compute::cuda
