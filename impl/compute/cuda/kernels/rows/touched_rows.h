// The touched rows that a warp takes, and the gradient of each: the sum over its blocks, in ascending
// order, of the sum inside the block (compute::RowUpdate), each column by one thread.
//
// From run and bags to a gradient is a chain of loads. A warp follows it for all of its rows at once,
// as far as there is room for occurrences; those of rows with many are read one after the other, some
// of a row together.
#pragma once

#include "compute/cuda/kernels/lane_columns.h"

namespace shardrec::compute::cuda {

inline constexpr int kStagedOccurrences = 64;  // of the rows of a warp

struct alignas(16) Occurrence {
  const float* gradient;  // of the first column of the shard
  uint32_t block;
  float weight;
};

struct TouchedRow {
  int64_t row;  // of the shard
  int64_t begin;
  int64_t end;
  const float* sum;  // of a hot row, of the first column of the shard; null: not summed yet
};

// Rows [first, first + rows) of the touched ones, which a warp takes.
struct WarpRows {
  int64_t first;
  TouchedRow row[kWarp];
  Occurrence occurrence[kStagedOccurrences];  // from row[0].begin on
};

// How many rows there are: the host may know the most only.
SHARDREC_DEVICE int64_t rows_there(const shardrec_cuda_touched_rows& touched) {
  return touched.there == nullptr ? touched.count : *global(touched.there);
}

SHARDREC_DEVICE Occurrence read_occurrence(const shardrec_cuda_touched_rows& touched, int64_t o) {
  const uint32_t bag = global(touched.bags)[o];
  return {.gradient = global(touched.gradients)[bag],
          .block = global(touched.blocks)[bag],
          .weight = touched.weights == nullptr ? 1.0F : global(touched.weights)[o]};
}

// All lanes of the warp call it. rows: 1 to 32.
SHARDREC_DEVICE void read_rows(const shardrec_cuda_touched_rows& touched, int64_t first, int rows,
                               WarpRows& own) {
  const int lane = lane_index();
  if (lane < rows) {
    const int64_t u = first + lane;
    TouchedRow row{.row = global(touched.rows)[u],
                   .begin = global(touched.run)[u],
                   .end = global(touched.run)[u + 1],
                   .sum = nullptr};
    if (row.end - row.begin > SHARDREC_CUDA_HOT_OCCURRENCES && global(touched.hot_sum)[u] >= 0) {
      row.sum = touched.hot_sums + global(touched.hot_sum)[u] * touched.hot_stride;
    }
    own.row[lane] = row;
  }
  if (lane == 0) own.first = first;
  __syncwarp();
  const int64_t begin = own.row[0].begin;
  const int64_t end = own.row[rows - 1].end;
  for (int i = lane; i < kStagedOccurrences && begin + i < end; i += kWarp) {
    own.occurrence[i] = read_occurrence(touched, begin + i);
  }
  __syncwarp();
}

// Occurrences o, o + 1, ... of a row of the warp.
template <int kCount>
SHARDREC_DEVICE void occurrences_from(const shardrec_cuda_touched_rows& touched,
                                      const WarpRows& own, int64_t o, Occurrence (&next)[kCount]) {
  const int64_t staged = o - own.row[0].begin;
  if (staged <= kStagedOccurrences - kCount) {
#pragma unroll
    for (int k = 0; k < kCount; ++k) next[k] = own.occurrence[staged + k];
  } else {
#pragma unroll
    for (int k = 0; k < kCount; ++k) next[k] = read_occurrence(touched, o + k);
  }
}

// The sum of gradients in some columns, occurrence by occurrence.
template <int kColumns>
struct BlockSums {
  float sum[kColumns];
  float block[kColumns];  // of the block that the last occurrence was in
  uint32_t number = 0;    // of that block
  uint32_t blocks = 0;    // that have begun

  SHARDREC_DEVICE void add(const shardrec_cuda_touched_rows& touched, const Occurrence& occurrence,
                           const float (&gradient)[kColumns]) {
    if (blocks == 0 || occurrence.block != number) {
      if (blocks != 0) finish_block();
      ++blocks;
      number = occurrence.block;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) block[c] = touched.block_start;
    }
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      block[c] =
          math::add_gradient(occurrence.weight, touched.gradient_scale, gradient[c], block[c]);
    }
  }

  SHARDREC_DEVICE void finish_block() {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      sum[c] = blocks == 1 ? block[c] : math::op::add(sum[c], block[c]);
    }
  }
};

// Adds the occurrences from o on, kAhead at once as long as there are so many, then fewer.
template <int kColumns, int kAhead, bool kAligned>
SHARDREC_DEVICE void add_occurrences(const shardrec_cuda_touched_rows& touched, const WarpRows& own,
                                     int64_t o, int64_t end, int column, int count,
                                     BlockSums<kColumns>& sums) {
  for (; end - o >= kAhead; o += kAhead) {
    Occurrence next[kAhead];
    occurrences_from(touched, own, o, next);
    float x[kAhead][kColumns];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if constexpr (kAligned) {
        LaneFloats<kColumns>::load(next[k].gradient + column, count, x[k]);
      } else {
        LaneFloats<kColumns>::load_each(next[k].gradient + column, count, x[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) sums.add(touched, next[k], x[k]);
  }
  if constexpr (kAhead > 1) {
    add_occurrences<kColumns, kAhead / 2, kAligned>(touched, own, o, end, column, count, sums);
  }
}

// The gradient of a row in the columns [column, column + count) of the shard.
template <int kColumns>
SHARDREC_DEVICE void sum_gradient(const shardrec_cuda_touched_rows& touched, const WarpRows& own,
                                  const TouchedRow& row, int column, int count,
                                  float (&sum)[kColumns]) {
  if (row.sum != nullptr) {
    LaneFloats<kColumns>::load(row.sum + column, count, sum);
    return;
  }
  BlockSums<kColumns> sums;
  if (kColumns == 1 || *global(touched.unaligned) == 0) {
    constexpr int kAhead = kColumns == 1 ? 4 : 2;
    add_occurrences<kColumns, kAhead, true>(touched, own, row.begin, row.end, column, count, sums);
  } else {
    add_occurrences<kColumns, 1, false>(touched, own, row.begin, row.end, column, count, sums);
  }
  sums.finish_block();
#pragma unroll
  for (int c = 0; c < kColumns; ++c) sum[c] = sums.sum[c];
}

}  // namespace shardrec::compute::cuda
