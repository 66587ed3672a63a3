// A rectangle of a table's cells. Boxes of a plan, tensors of a checkpoint and what is read of one into the
// other each hold one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace shardrec::plan {

// Rows [row, row + rows) x columns [col, col + cols) of a table.
struct Rectangle {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t col = 0;
  int64_t cols = 0;

  bool operator==(const Rectangle&) const = default;

  int64_t end_row() const { return row + rows; }
  int64_t end_col() const { return col + cols; }
  bool empty() const { return rows <= 0 || cols <= 0; }
  int64_t area() const { return rows * cols; }
  // False for an empty one. `part` may have any numbers that a caller or a file has given: no sum of them is
  // taken, which could overflow.
  bool contains(const Rectangle& part) const {
    return !part.empty() && part.row >= row && part.col >= col && part.rows <= rows &&
           part.cols <= cols && part.row - row <= rows - part.rows &&
           part.col - col <= cols - part.cols;
  }
};

// The cells of both; empty where they share none.
inline Rectangle intersect(const Rectangle& a, const Rectangle& b) {
  const int64_t row = std::max(a.row, b.row);
  const int64_t col = std::max(a.col, b.col);
  return {row, std::min(a.end_row(), b.end_row()) - row, col,
          std::min(a.end_col(), b.end_col()) - col};
}

// The order of boxes in plans: by first row, then first column.
inline bool before(const Rectangle& a, const Rectangle& b) {
  return a.row != b.row ? a.row < b.row : a.col < b.col;
}

// Why rectangles do not cover each cell of a table exactly once.
struct TilingFault {
  // Two rectangles that share cells, by their numbers; or a cell that none has.
  bool overlap = false;
  size_t first = 0;
  size_t second = 0;
  int64_t row = 0;
  int64_t col = 0;
};

// rectangles: inside `table`, not empty, in the order of before(). Nothing: they cover each of its cells
// exactly once. O(n log n).
std::optional<TilingFault> find_tiling_fault(const Rectangle& table,
                                             std::span<const Rectangle> rectangles);

}  // namespace shardrec::plan
