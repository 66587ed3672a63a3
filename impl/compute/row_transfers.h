// Rows on their way between the memory of a back end and the host's: what is read, written, saved,
// loaded and averaged outside of steps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/element.h"

namespace shardrec::compute {

// Where the rows of a transfer lie: row i begins at element numbers[i] * stride, or i * stride where
// there are no numbers. The numbers are in the host's memory.
struct RowSource {
  const void* data = nullptr;
  Element element = Element::kFloat32;
  size_t stride = 0;  // elements
  const int64_t* numbers = nullptr;
};
struct RowTarget {
  void* data = nullptr;
  Element element = Element::kFloat32;
  size_t stride = 0;
  const int64_t* numbers = nullptr;  // one that stands here several times gets the last of its rows
};

// [rows, width] elements. Both sides have elements of one type, or one has floats: then rows are
// widened exactly, or rounded to nearest. They do not overlap.
struct RowTransfer {
  RowSource from;
  RowTarget to;
  int64_t rows = 0;
  int64_t width = 0;
  bool spread = false;  // from has one element per row, which fills all columns of to
};

// Callers move at most so many bytes at once, or one row that is larger: a back end keeps no more
// memory for it.
inline constexpr size_t kMostTransferred = size_t{4} << 20;
constexpr int64_t rows_at_once(size_t row_bytes, size_t most = kMostTransferred) {
  return row_bytes >= most ? 1 : static_cast<int64_t>(most / row_bytes);
}

}  // namespace shardrec::compute
