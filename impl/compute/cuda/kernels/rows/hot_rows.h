// Rows that very many occurrences name: found when touched rows are opened. Each of their blocks
// (RowUpdate::blocks) is summed by a warp for 32 columns; who needs a row's gradient adds these sums in
// order (touched_rows.h), so that the bits are those of one thread. Which rows get room for their sums
// may differ from run to run where there are more than room; no bit depends on it.
#pragma once

#include "compute/cuda/kernels/rows/touched_rows.h"

namespace shardrec::compute::cuda {

SHARDREC_DEVICE uint32_t block_of(const shardrec_cuda_touched_rows& touched, int64_t o) {
  return global(touched.blocks)[global(touched.bags)[o]];
}

// Makes room for the sums of a row of a shard, if there is some. Returns the row's index, or -1.
SHARDREC_DEVICE int32_t list_hot_row(const shardrec_cuda_row_opening& job, int32_t shard,
                                     int64_t row, int64_t begin, int64_t end) {
  const shardrec_cuda_touched_rows& touched = job.shards[shard];
  const uint32_t first = block_of(touched, begin);
  const int64_t sums = int64_t{block_of(touched, end - 1)} - first + 1;
  if (sums * SHARDREC_CUDA_OCCURRENCES_OF_A_SUM > end - begin) return -1;
  const unsigned at = atomicAdd(job.hot_count, 1U);
  if (at >= job.most_hot_rows) return -1;
  const unsigned first_sum = atomicAdd(job.hot_sum_count, static_cast<unsigned>(sums));
  const bool has_room = first_sum + sums <= job.most_hot_sums;
  job.hot_rows[at] = {.shard = shard,
                      .first_sum = first_sum,
                      .sums = static_cast<uint32_t>(sums),
                      .first_block = first,
                      .row = row};
  for (int64_t i = first_sum; i < first_sum + sums && i < job.most_hot_sums; ++i) {
    job.row_of_sum[i] = has_room ? static_cast<int32_t>(at) : -1;
  }
  return has_room ? static_cast<int32_t>(at) : -1;
}

// The blocks of a row's occurrences.
struct BlocksOfRow {
  const shardrec_cuda_touched_rows& touched;
  int64_t begin;
  SHARDREC_DEVICE uint32_t operator[](int64_t i) const { return block_of(touched, begin + i); }
};

// The first occurrence of a hot row that is not of a block before its block `number`; the end of its
// occurrences: there is none. All lanes of the warp call it.
SHARDREC_DEVICE int64_t first_of_block(const shardrec_cuda_touched_rows& touched,
                                       const shardrec_cuda_hot_row& row, uint32_t number) {
  const int64_t begin = global(touched.run)[row.row];
  if (number == row.first_block) return begin;
  const int64_t count = global(touched.run)[row.row + 1] - begin;
  return begin + last_start(BlocksOfRow{touched, begin}, count, int64_t{number} - 1) + 1;
}

// The sum of the block `number`, whose first occurrence is o, in one column. All lanes of the warp call it.
SHARDREC_DEVICE float sum_block(const shardrec_cuda_touched_rows& touched, int64_t o, int64_t end,
                                uint32_t number, int64_t column) {
  constexpr int kAhead = 8;
  // An occurrence for each lane, and the ones behind on their way.
  const auto read = [&](int64_t own) {
    return read_occurrence(touched, own < end ? own : end - 1);
  };
  float sum = touched.block_start;
  Occurrence next = read(o + lane_index());
  for (bool ends = false; !ends; o += kWarp) {
    const int64_t own = o + lane_index();
    const Occurrence occurrence = next;
    next = read(own + kWarp);
    const unsigned others = __ballot_sync(kAllLanes, own >= end || occurrence.block != number);
    ends = others != 0;
    const int count = ends ? __ffs(static_cast<int>(others)) - 1 : kWarp;
    for (int i = 0; i < count; i += kAhead) {
      float x[kAhead];
      float weight[kAhead];
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        const int from = i + k < count ? i + k : count - 1;
        const auto address =
            __shfl_sync(kAllLanes, reinterpret_cast<unsigned long long>(occurrence.gradient), from);
        weight[k] = __shfl_sync(kAllLanes, occurrence.weight, from);
        x[k] = global(reinterpret_cast<const float*>(address))[column];
      }
#pragma unroll
      for (int k = 0; k < kAhead; ++k) {
        if (i + k < count) {
          sum = math::add_gradient(weight[k], touched.gradient_scale, x[k], sum);
        }
      }
    }
  }
  return sum;
}

// A warp for each sum and 32 columns.
SHARDREC_KERNEL(3) sum_hot_blocks(shardrec_cuda_row_opening job) {
  const uint32_t found = *job.hot_sum_count;
  const int64_t sums = found < job.most_hot_sums ? found : job.most_hot_sums;
  const int64_t slices = (job.widest + kWarp - 1) / kWarp;
  const int64_t warps = int64_t{gridDim.x} * kWarps;
  for (int64_t i = grid_warp_index(); i < sums * slices; i += warps) {
    const int64_t at = i / slices;
    const int32_t hot = job.row_of_sum[at];
    if (hot < 0) continue;
    const shardrec_cuda_hot_row row = job.hot_rows[hot];
    const shardrec_cuda_touched_rows& touched = job.shards[row.shard];
    const int64_t first_column = i % slices * kWarp;
    if (first_column >= touched.width) continue;
    const uint32_t number = row.first_block + static_cast<uint32_t>(at - row.first_sum);
    const int64_t end = global(touched.run)[row.row + 1];
    const int64_t begin = first_of_block(touched, row, number);
    const int64_t column = first_column + lane_index();
    // Lanes without a column read that of another. -0 is what nothing changes when it is added.
    float sum = -0.0F;
    if (begin < end && block_of(touched, begin) == number) {
      sum = sum_block(touched, begin, end, number, column < touched.width ? column : first_column);
    }
    if (column < touched.width) global(touched.hot_sums)[at * touched.hot_stride + column] = sum;
  }
}

}  // namespace shardrec::compute::cuda
