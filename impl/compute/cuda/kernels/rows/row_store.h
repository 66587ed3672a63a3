// Rows of floats as they are stored (element.h): 16-bit numbers to nearest, or with random words, of
// which four columns of a table share a counter of Philox.
#pragma once

#include "compute/cuda/kernels/lane_columns.h"

namespace shardrec::compute::cuda {

// The column of the table that is column c of the shard.
SHARDREC_DEVICE int64_t table_column(const shardrec_cuda_rounding& rounding, int64_t c) {
#pragma unroll 1
  for (int64_t m = 0; m < rounding.map_count; ++m) {
    const shardrec_cuda_column_map& map = global(rounding.maps)[m];
    if (c < map.offset + map.count) return map.column + (c - map.offset);
  }
  return c;
}

// The random words of the four columns of the table that `column` is one of, for row `row` of the shard.
SHARDREC_DEVICE void random_words(const shardrec_cuda_rounding& rounding, int64_t row,
                                  int64_t column, math::Word (&word)[4]) {
  const auto of_table = static_cast<uint64_t>(rounding.first_row + row);
  word[0] = static_cast<math::Word>(of_table);
  word[1] = static_cast<math::Word>(of_table >> 32);
  word[2] = static_cast<math::Word>(column / 4);
  word[3] = rounding.step;
  math::philox_rounds(word[0], word[1], word[2], word[3], {rounding.key[0], rounding.key[1]});
}

// Word column % 4.
SHARDREC_DEVICE math::Word word_of(const math::Word (&word)[4], int64_t column) {
  const math::Word even = (column & 2) == 0 ? word[0] : word[2];
  const math::Word odd = (column & 2) == 0 ? word[1] : word[3];
  return (column & 1) == 0 ? even : odd;
}

SHARDREC_DEVICE void store_columns(const Float32Columns&, const shardrec_cuda_row_job& job,
                                   int64_t row, const LaneColumns& own, const float (&x)[8]) {
  LaneFloats<8>::store(static_cast<float*>(global(job.table)) + row * job.stride + own.first,
                       own.count, x);
}

template <class Vector, class Half>
SHARDREC_DEVICE void store_columns(const HalfColumns<Vector, Half>&,
                                   const shardrec_cuda_row_job& job, int64_t row,
                                   const LaneColumns& own, const float (&x)[8]) {
  math::Word half[8];
  if (job.rounding.stochastic != 0) {
#pragma unroll
    for (int c = 0; c < 8; c += 4) {
      const int64_t column = table_column(job.rounding, job.first_column + own.first + c);
      math::Word word[4];
      random_words(job.rounding, row, column, word);
#pragma unroll
      for (int i = 0; i < 4; ++i) half[c + i] = math::stochastic_half<Half>(x[c + i], word[i]);
    }
  } else {
#pragma unroll
    for (int c = 0; c < 8; ++c) half[c] = math::nearest_half<Half>(x[c]);
  }
  auto* const at = static_cast<uint16_t*>(global(job.table)) + row * job.stride + own.first;
  *reinterpret_cast<uint4*>(at) = make_uint4(half[0] | half[1] << 16, half[2] | half[3] << 16,
                                             half[4] | half[5] << 16, half[6] | half[7] << 16);
}

SHARDREC_DEVICE void store_columns(const SingleColumn&, const shardrec_cuda_row_job& job,
                                   int64_t row, const LaneColumns& own, const float (&x)[1]) {
  const int64_t at = row * job.stride + own.first;
  if (job.element == SHARDREC_CUDA_FLOAT32 || job.rounding.stochastic == 0) {
    store_number(global(job.table), job.element, at, x[0]);
    return;
  }
  const int64_t column = table_column(job.rounding, job.first_column + own.first);
  math::Word words[4];
  random_words(job.rounding, row, column, words);
  const math::Word word = word_of(words, column);
  const math::Word half = job.element == SHARDREC_CUDA_FLOAT16
                              ? math::stochastic_half<math::Float16>(x[0], word)
                              : math::stochastic_half<math::Bfloat16>(x[0], word);
  static_cast<uint16_t*>(global(job.table))[at] = static_cast<uint16_t>(half);
}

}  // namespace shardrec::compute::cuda
