// The optimizers' steps, one column at a time.
#pragma once

#include "compute/kernels.h"

namespace shardrec::compute::cpu::scalar {

// One range of sums of a row: w, g and the matrices' rows begin at its first column.
struct RangeOfRow {
  const OptimizerStep& step;
  int64_t columns = 0;
  float* w = nullptr;
  const float* g = nullptr;
  float* m = nullptr;      // first matrix
  float* v = nullptr;      // second matrix
  float* state = nullptr;  // row value
};

// What an optimizer does: sums writes its sums and changes nothing; step applies the formula, with
// the sums over `sum_columns` columns.
struct Optimizer {
  void (*sums)(const RangeOfRow& range, float* out) noexcept;  // null: none
  void (*step)(const RangeOfRow& range, const float* sums, float sum_columns) noexcept;
};

const Optimizer& optimizer(const OptimizerStep& step) noexcept;

// As in Kernels.
void element_update(const ElementUpdate& job, int64_t first, int64_t last) noexcept;
void element_sums(const ElementUpdate& job, int64_t first, int64_t last, float* out) noexcept;

// 16-lane sum of products of `columns` numbers.
float dot(const void* row, Element element, const float* y, int64_t columns) noexcept;

// 16-lane sum of squares of `columns` numbers.
float square_sum(const float* x, int64_t columns) noexcept;

}  // namespace shardrec::compute::cpu::scalar
