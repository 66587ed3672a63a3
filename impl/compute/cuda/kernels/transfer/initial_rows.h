// Initial values of rows (compute::InitialRows): a thread for four columns, which have one counter of
// Philox, of each row.
#pragma once

#include "compute/cuda/kernels/rows.h"
#include "compute/math/initial_values.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::cuda {

inline constexpr int64_t kWords = 4;

// Quads of columns of the table that the columns of a row are in.
__host__ SHARDREC_DEVICE int64_t quads_of(const shardrec_cuda_initial_rows& job) {
  return (job.column + job.columns - 1) / kWords - job.column / kWords + 1;
}

SHARDREC_KERNEL(8) fill_initial_rows(shardrec_cuda_initial_rows job) {
  const int64_t quads = quads_of(job);
  const int64_t number = grid_thread_index();
  const int64_t row = number / quads;
  if (row >= job.rows) return;
  const int64_t quad = job.column / kWords + number % quads;
  const auto of_table = static_cast<uint64_t>(job.first_row + row);
  math::Word word[kWords] = {static_cast<math::Word>(of_table),
                             static_cast<math::Word>(of_table >> 32), static_cast<math::Word>(quad),
                             0};
  math::philox_rounds(word[0], word[1], word[2], word[3], math::philox_key(job.key));
  const math::UniformRange range{.low = job.low, .span = job.span, .last = job.last};
#pragma unroll
  for (int i = 0; i < kWords; ++i) {
    const int64_t column = quad * kWords + i - job.column;
    if (column < 0 || column >= job.columns) continue;
    store_number(job.data, job.element, row * job.stride + column,
                 math::uniform_value(range, word[i]));
  }
}

}  // namespace shardrec::compute::cuda
