#include "embedding/batch/finite_check.h"

#include "compute/non_finite.h"

namespace shardrec::embedding {
namespace {

shardrec_dtype dtype_of(compute::Element element) {
  switch (element) {
    case compute::Element::kFloat16:
      return SHARDREC_FLOAT16;
    case compute::Element::kBfloat16:
      return SHARDREC_BFLOAT16;
    default:
      return SHARDREC_FLOAT32;
  }
}

int64_t first_on_host(const OutputView& given, int64_t rows, int64_t columns) {
  const shardrec_dtype dtype = dtype_of(given.element);
  if (given.stride == columns) {
    return compute::first_non_finite(given.data, dtype, rows * columns);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t column = compute::first_non_finite(given.at(row, 0), dtype, columns);
    if (column >= 0) return row * columns + column;
  }
  return -1;
}

}  // namespace

void FiniteCheck::clear() {
  is_searching_ = false;
  first_ = -1;
}

void FiniteCheck::look_through(const OutputView& given, int64_t rows, int64_t columns,
                               compute::Backend& backend) {
  clear();
  if (rows == 0 || columns == 0) return;
  if (given.device.type == SHARDREC_DEVICE_CPU) {
    first_ = first_on_host(given, rows, columns);
    return;
  }
  if (search_ == nullptr) search_ = backend.make_non_finite_search();
  search_->begin({.data = given.data,
                  .element = given.element,
                  .rows = rows,
                  .columns = columns,
                  .stride = given.stride});
  is_searching_ = true;
}

int64_t FiniteCheck::first() {
  if (is_searching_) {
    first_ = search_->first();
    is_searching_ = false;
  }
  return first_;
}

}  // namespace shardrec::embedding
