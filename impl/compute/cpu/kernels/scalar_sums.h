// Sums over columns, one column at a time: 16 lanes and the tree (kernels.h).
#pragma once

#include <array>

#include "compute/cpu/kernels/sets.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::cpu::scalar {

// Writes kSums totals over `columns` columns; add_column(c, sums) adds column c to them.
template <size_t kSums, class AddColumn>
void sum_columns(int64_t columns, float* out, const AddColumn& add_column) noexcept {
  std::array<std::array<float, kSums>, kLanes> lanes{};
  for (int64_t c = 0; c < columns; ++c) {
    add_column(c, lanes[static_cast<size_t>(c % kLanes)].data());
  }
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) {
      for (size_t k = 0; k < kSums; ++k) lanes[i][k] += lanes[i + half][k];
    }
  }
  for (size_t k = 0; k < kSums; ++k) out[k] = lanes[0][k];
}

}  // namespace shardrec::compute::cpu::scalar
