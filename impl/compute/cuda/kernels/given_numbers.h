// The first number of a matrix that is NaN or infinite: a thread looks at kTileItems numbers, kThreads apart.
#pragma once

#include "compute/cuda/jobs/given_numbers.h"
#include "compute/cuda/kernels/checks.h"
#include "compute/cuda/kernels/rows.h"
#include "compute/math/finite.h"

namespace shardrec::compute::cuda {

// Row: of one number. To widen one of 16 bits leaves it finite, or not finite, as it was.
template <class Row>
SHARDREC_KERNEL(4)
find_non_finite_number(shardrec_cuda_given_numbers job) {
  static_assert(Row::kColumns == 1);
  const int64_t begin = int64_t{blockIdx.x} * kTile;
  const int64_t count = job.rows * job.columns;
  // The place of the thread's first number; from one to the next it goes so many rows and columns on.
  const int64_t at = begin + item_of_tile(0);
  int64_t row = at / job.columns;
  int64_t column = at % job.columns;
  const int64_t rows_on = kThreads / job.columns;
  const int64_t columns_on = kThreads % job.columns;
  typename Row::Raw loaded[kTileItems];
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    const bool exists = begin + item_of_tile(k) < count;
    loaded[k] =
        exists ? raw_at<Row>(job.data, job.stride, row, column) : static_cast<typename Row::Raw>(0);
    row += rows_on;
    column += columns_on;
    if (column >= job.columns) {
      column -= job.columns;
      ++row;
    }
  }
  FirstWrong first;
#pragma unroll
  for (int k = 0; k < kTileItems; ++k) {
    float number[1];
    Row::widen(loaded[k], number);
    if (!math::is_finite(number[0])) first.see(item_of_tile(k));
  }
  first.tell(job.first, begin);
}

}  // namespace shardrec::compute::cuda
