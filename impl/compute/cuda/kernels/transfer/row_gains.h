// What copies of rows have gained (compute::RowGains): a thread for each element.
#pragma once

#include "compute/cuda/kernels/transfer/row_codes.h"
#include "compute/math/gains.h"

namespace shardrec::compute::cuda {

SHARDREC_KERNEL(4)
add_gains_to_rows(shardrec_cuda_row_gains job) {
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = grid_thread_index(); i < job.count * job.width; i += step) {
    const int64_t row = i / job.width;
    const int64_t number = job.numbers == nullptr ? row : global(job.numbers)[row];
    const int64_t element = number * job.stride + i % job.width;
    float x[1];
    float before[1];
    float after[1];
    load_numbers(global(job.rows), job.element, element, x);
    load_numbers(global(job.before), job.element, i, before);
    load_numbers(global(job.after), job.element, i, after);
    store_number(global(job.rows), job.element, element,
                 math::add_gain(x[0], before[0], after[0], job.at_least_zero != 0));
  }
}

}  // namespace shardrec::compute::cuda
