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

// Where a row of the shard begins, in a job's columns.
SHARDREC_DEVICE void* row_at(const shardrec_cuda_row_job& job, int64_t row) {
  const int64_t bytes = job.element == SHARDREC_CUDA_FLOAT32 ? 4 : 2;
  return static_cast<unsigned char*>(global(job.table)) + row * job.stride * bytes;
}

// Columns of row `row` of the shard from `first` on, of one lane; the row begins at `begin`.
SHARDREC_DEVICE void store_columns(const Float32Columns&, const shardrec_cuda_row_job& /*job*/,
                                   int64_t /*row*/, void* begin, int first, const float (&x)[4]) {
  auto* const at = static_cast<float*>(global(begin)) + first;
  __stcs(reinterpret_cast<float4*>(at), make_float4(x[0], x[1], x[2], x[3]));
}

template <class Half>
SHARDREC_DEVICE void store_columns(const HalfColumns<Half>&, const shardrec_cuda_row_job& job,
                                   int64_t row, void* begin, int first, const float (&x)[4]) {
  math::Word half[4];
  if (job.rounding.stochastic != 0) {
    math::Word word[4];
    random_words(job.rounding, row, table_column(job.rounding, job.first_column + first), word);
#pragma unroll
    for (int c = 0; c < 4; ++c) half[c] = math::stochastic_half<Half>(x[c], word[c]);
  } else {
#pragma unroll
    for (int c = 0; c < 4; ++c) half[c] = nearest_number<Half>(x[c]);
  }
  auto* const at = static_cast<uint16_t*>(global(begin)) + first;
  __stcs(reinterpret_cast<uint2*>(at),
         make_uint2(half[0] | half[1] << 16, half[2] | half[3] << 16));
}

SHARDREC_DEVICE void store_columns(const SingleColumn&, const shardrec_cuda_row_job& job,
                                   int64_t row, void* begin, int first, const float (&x)[1]) {
  if (job.element == SHARDREC_CUDA_FLOAT32 || job.rounding.stochastic == 0) {
    store_number(global(begin), job.element, first, x[0]);
    return;
  }
  const int64_t column = table_column(job.rounding, job.first_column + first);
  math::Word words[4];
  random_words(job.rounding, row, column, words);
  const math::Word word = word_of(words, column);
  const math::Word half = job.element == SHARDREC_CUDA_FLOAT16
                              ? math::stochastic_half<math::Float16>(x[0], word)
                              : math::stochastic_half<math::Bfloat16>(x[0], word);
  static_cast<uint16_t*>(global(begin))[first] = static_cast<uint16_t>(half);
}

}  // namespace shardrec::compute::cuda
