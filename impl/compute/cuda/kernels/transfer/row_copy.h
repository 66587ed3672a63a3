// Rows copied by their numbers (jobs/row_copy.h): a thread for each unit of as many bytes as addresses,
// strides and rows have in common.
#pragma once

#include "compute/cuda/jobs/transfer.h"
#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

template <class Unit>
SHARDREC_KERNEL(8)
copy_rows_in_units(shardrec_cuda_row_copy job) {
  const int64_t units = job.row_bytes / static_cast<int64_t>(sizeof(Unit));
  const int64_t step = int64_t{gridDim.x} * kThreads;
  for (int64_t i = grid_thread_index(); i < job.rows * units; i += step) {
    const int64_t row = i / units;
    const int64_t unit = i % units;
    const int64_t from = job.from_numbers == nullptr ? row : job.from_numbers[row];
    const int64_t to = job.to_numbers == nullptr ? row : job.to_numbers[row];
    const auto* const source = static_cast<const unsigned char*>(job.from) + from * job.from_stride;
    auto* const target = static_cast<unsigned char*>(job.to) + to * job.to_stride;
    reinterpret_cast<Unit*>(target)[unit] = reinterpret_cast<const Unit*>(source)[unit];
  }
}

}  // namespace shardrec::compute::cuda
