// The kernels on rows in plain C++: what the vector kernels are compared with, bit by bit.
#pragma once

#include "compute/kernels.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::cpu::scalar {

void row_update(const RowUpdate& job, int64_t first_row, int64_t last_row,
                std::byte* scratch) noexcept;
void row_sums(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
              int64_t first_row, int64_t last_row, std::byte* scratch) noexcept;
void row_gradients(const RowUpdate& job, float* out, int64_t first_row, int64_t last_row,
                   std::byte* scratch) noexcept;
void row_norms(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
               int64_t first_row, int64_t last_row, std::byte* scratch) noexcept;
void row_rescale(const RowUpdate& job, const ColumnRange* ranges, int count, const float* norms,
                 int64_t first_row, int64_t last_row, std::byte* scratch) noexcept;

// Element i of a row of any type.
float element_at(const void* row, Element element, size_t i) noexcept;

// Rounded to nearest.
template <class Half>
uint16_t narrowed(float x) noexcept {
  return static_cast<uint16_t>(math::nearest_half<Half>(x));
}

}  // namespace shardrec::compute::cpu::scalar
