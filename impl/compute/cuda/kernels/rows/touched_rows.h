// The touched rows that a warp takes, and the gradient of each: the sum over its blocks, in ascending
// order, of the sum inside the block (compute::RowUpdate), each column by one thread.
//
// From run and bags to a gradient is a chain of loads. A warp follows it for all of its rows at once, to
// the first occurrence of each and to the others as far as there is room for occurrences; those of rows
// with many are read one after the other, some of a row together.
#pragma once

#include "compute/cuda/kernels/lane_columns.h"

namespace shardrec::compute::cuda {

inline constexpr int kStagedOccurrences = 64;  // of the rows of a warp

struct alignas(16) Occurrence {
  const float* gradient;  // of the first column of the shard
  uint32_t block;
  float weight;
};

struct alignas(16) TouchedRow {
  int64_t row;    // of the shard
  int64_t begin;  // its first occurrence
  const float*
      gradient;         // of that, or the first sum of a hot row: of the first column of the shard
  float weight;         // of that
  int32_t occurrences;  // of a hot row less than 0: -1 for each of its sums
};

// Rows [first, first + rows) of the touched ones, which a warp takes.
struct WarpRows {
  int64_t first;
  int rows;
  bool aligned;  // may gradients be loaded 16 bytes at once?
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
  // A lane without a row has the last one, which it may load and does not use.
  const int64_t u = first + (lane < rows ? lane : rows - 1);
  const int64_t end = global(touched.run)[u + 1];
  TouchedRow row{.row = global(touched.rows)[u],
                 .begin = global(touched.run)[u],
                 .gradient = nullptr,
                 .weight = 1,
                 .occurrences = 0};
  const int32_t hot =
      end - row.begin > SHARDREC_CUDA_HOT_OCCURRENCES ? global(touched.hot_row)[u] : -1;
  if (hot >= 0) {
    const shardrec_cuda_hot_row& sums = global(touched.hot_rows)[hot];
    row.gradient = touched.hot_sums + sums.first_sum * touched.hot_stride;
    row.occurrences = -static_cast<int32_t>(sums.sums);
  } else {
    const Occurrence occurrence = read_occurrence(touched, row.begin);
    row.gradient = occurrence.gradient;
    row.weight = occurrence.weight;
    row.occurrences = static_cast<int32_t>(end - row.begin);
  }
  own.row[lane] = row;
  if (lane == 0) {
    own.first = first;
    own.rows = rows;
    own.aligned = *global(touched.unaligned) == 0;
  }
  __syncwarp();
  const int64_t begin = own.row[0].begin;
  const int last = own.row[rows - 1].occurrences;
  const int64_t staged_end = own.row[rows - 1].begin + (last > 0 ? last : 0);
  for (int i = lane; i < kStagedOccurrences && begin + i < staged_end; i += kWarp) {
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
                                     int64_t o, int64_t end, int column,
                                     BlockSums<kColumns>& sums) {
  for (; end - o >= kAhead; o += kAhead) {
    Occurrence next[kAhead];
    occurrences_from(touched, own, o, next);
    float x[kAhead][kColumns];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      if constexpr (kAligned) {
        LaneFloats<kColumns>::load(next[k].gradient + column, x[k]);
      } else {
        LaneFloats<kColumns>::load_each(next[k].gradient + column, x[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) sums.add(touched, next[k], x[k]);
  }
  if constexpr (kAhead > 1) {
    add_occurrences<kColumns, kAhead / 2, kAligned>(touched, own, o, end, column, sums);
  }
}

// What the gradient of a row that has not several is made of, in columns from `column` of the
// shard on.
template <int kColumns>
SHARDREC_DEVICE void load_gradient(const WarpRows& own, const TouchedRow& row, int column,
                                   float (&x)[kColumns]) {
  if (kColumns == 1 || own.aligned) {
    LaneFloats<kColumns>::load(row.gradient + column, x);
  } else {
    LaneFloats<kColumns>::load_each(row.gradient + column, x);
  }
}

// Makes what was loaded of a row the gradient of one that has not several.
template <int kColumns>
SHARDREC_DEVICE void sum_first(const shardrec_cuda_touched_rows& touched, const TouchedRow& row,
                               float (&x)[kColumns]) {
  // A sum stays what it is: -0 is what nothing changes when it is added.
  const float scale = row.occurrences < 0 ? 1.0F : touched.gradient_scale;
  const float start = row.occurrences < 0 ? -0.0F : touched.block_start;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) x[c] = math::add_gradient(row.weight, scale, x[c], start);
}

// Adds the sums of a hot row, which are aligned.
template <int kColumns>
SHARDREC_DEVICE void add_hot_sums(const shardrec_cuda_touched_rows& touched, const TouchedRow& row,
                                  int column, float (&sum)[kColumns]) {
  const float* at = row.gradient + column;
  LaneFloats<kColumns>::load(at, sum);
#pragma unroll 4
  for (int i = -1; i > row.occurrences; --i) {
    at += touched.hot_stride;
    float x[kColumns];
    LaneFloats<kColumns>::load(at, x);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) sum[c] = math::op::add(sum[c], x[c]);
  }
}

// Does a row have more than one occurrence or sum?
SHARDREC_DEVICE bool has_several(const TouchedRow& row) {
  return row.occurrences > 1 || row.occurrences < -1;
}

// The gradient of a row that has several.
template <int kColumns>
SHARDREC_DEVICE void sum_gradient(const shardrec_cuda_touched_rows& touched, const WarpRows& own,
                                  const TouchedRow& row, int column, float (&sum)[kColumns]) {
  if (row.occurrences < 0) {
    add_hot_sums(touched, row, column, sum);
    return;
  }
  const int64_t end = row.begin + row.occurrences;
  BlockSums<kColumns> sums;
  if (kColumns == 1 || own.aligned) {
    add_occurrences<kColumns, 4, true>(touched, own, row.begin, end, column, sums);
  } else {
    add_occurrences<kColumns, 1, false>(touched, own, row.begin, end, column, sums);
  }
  sums.finish_block();
#pragma unroll
  for (int c = 0; c < kColumns; ++c) sum[c] = sums.sum[c];
}

}  // namespace shardrec::compute::cuda
