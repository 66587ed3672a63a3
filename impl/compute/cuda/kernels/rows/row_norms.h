// max_norm (Kernels::row_norms, row_rescale): the squared norms of stored rows, and rows that are too
// long brought to the longest allowed.
#pragma once

#include "compute/cuda/kernels/rows/column_sums.h"
#include "compute/cuda/kernels/rows/row_store.h"

namespace shardrec::compute::cuda {

template <class Row>
struct NormShared {
  struct OfWarp {
    SummedNumbers<1, Row::kColumns> numbers;
    RowTotals<1> totals;
  };
  BlockJob job;
  OfWarp warp[kWarps];
};

// The rows of as many groups as the warp has; all of its lanes call it.
template <class Row>
SHARDREC_DEVICE void sum_squares(const shardrec_cuda_row_job& job, int64_t first, int rows,
                                 const LaneGroup& group, typename NormShared<Row>::OfWarp& own) {
  const bool has_row = group.number < rows;
  const int64_t row = global(job.touched.rows)[has_row ? first + group.number : first];
  const int of_tile = group.lanes * Row::kColumns;
  ColumnSums<1> sums;
  for (int tile = 0; tile < job.tiles; ++tile) {
    const LaneColumns lane =
        columns_of_lane<Row::kColumns>(tile, group.lanes, group.lane, job.columns);
    float w[Row::kColumns] = {};
    if (has_row && lane.count > 0) {
      Row::widen(Row::load(job.table, job.element, row * job.stride + lane.first, lane.count), w);
    }
#pragma unroll
    for (int c = 0; c < Row::kColumns; ++c) {
      own.numbers.x[0][lane_index() * Row::kColumns + c] = w[c];
    }
    __syncwarp();
    const int left = job.columns - tile * of_tile;
    const int columns = left < of_tile ? left : of_tile;
    for (int i = 0; 2 * i < group.groups; ++i) {
      const int of_row = ColumnSums<1>::row_of(i);
      if (tile == 0) sums.clear();
      if (of_row < group.groups) {
        sums.add(columns, [&](int c, float* sum) {
          math::add_square(own.numbers.x[0][of_row * of_tile + c], *sum);
        });
      }
      if (tile + 1 == job.tiles) sums.finish(of_row, group.groups, own.totals);
    }
    __syncwarp();
  }
  if (has_row && group.lane == 0) {
    global(job.out)[(first + group.number) * job.out_stride] = own.totals.sum[group.number][0];
  }
}

template <class Row>
SHARDREC_KERNEL(4)
sum_row_norms(const shardrec_cuda_row_job* jobs, const int64_t* first_block, int32_t count) {
  auto& block = shared<NormShared<Row>>();
  const int64_t first = block.job.read(jobs, first_block, count);
  const int rows = block.job.rows_from(first);
  const LaneGroup group = lane_group(block.job.job.lanes);
  for (int begin = 0; begin < rows; begin += group.groups) {
    sum_squares<Row>(block.job.job, first + begin, rows - begin, group, block.warp[warp_index()]);
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
    for (int tile = 0;; ++tile) {
      const LaneColumns lane =
          columns_of_lane<Row::kColumns>(tile, job.lanes, group.lane, job.columns);
      if (lane.count == 0) break;
      float w[Row::kColumns];
      Row::widen(Row::load(job.table, job.element, row * job.stride + lane.first, lane.count), w);
#pragma unroll
      for (int c = 0; c < Row::kColumns; ++c) w[c] = math::op::mul(w[c], factor);
      store_columns(Row{}, job, row, lane, w);
    }
  }
}

}  // namespace shardrec::compute::cuda
