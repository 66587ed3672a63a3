// What differs between the kernels on rows by optimizer, weight decay and element type.
#pragma once

#include <array>

#include "compute/kernels.h"

namespace shardrec::compute::cpu {

// Rows [first, last) of the job; sums null: the optimizer has none. Both null: no such formula.
struct RowKernels {
  void (*update)(const RowUpdate& job, int64_t first, int64_t last,
                 std::byte* scratch) noexcept = nullptr;
  void (*sums)(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
               int64_t first, int64_t last, std::byte* scratch) noexcept = nullptr;
};

using OfDecays = std::array<RowKernels, 3>;
using RowKernelTable = std::array<OfDecays, kRowOptimizerKinds>;

}  // namespace shardrec::compute::cpu
