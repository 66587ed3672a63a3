// The weights of one table as they are served: rows in memory of the process or in mapped files, as
// the checkpoint's boxes cut them, or coded in 8 bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "compute/buffer.h"
#include "compute/element.h"
#include "core/environment.h"
#include "shardrec/options.h"

namespace shardrec::serving {

// Rows [first, next range's first): row r begins stride elements behind row r - 1.
struct RowRange {
  int64_t first = 0;
  const std::byte* data = nullptr;
  int64_t stride = 0;  // elements; of coded rows bytes
};

// Columns [col, col + cols) of the table, by rows: a range, or several that follow one another.
struct ColumnSlice {
  int64_t col = 0;
  int64_t cols = 0;
  std::vector<RowRange> ranges;
};

// Rows of a table that have changed: where they are read in place of the table's memory.
class StagedRows;

// Copies share what the slices point into.
struct ServedTable {
  int64_t rows = 0;
  int64_t dim = 0;
  shardrec_out_of_range out_of_range = SHARDREC_OUT_OF_RANGE_ERROR;
  compute::Element element = compute::Element::kFloat32;
  bool coded = false;               // rows as compute::PooledLookup::coded has them; one slice
  std::vector<ColumnSlice> slices;  // they tile [0, dim), ascending

  // Null: all rows are where the slices say. Else there is one slice, of one range.
  std::shared_ptr<const StagedRows> staged = nullptr;

  // What the slices point into.
  std::shared_ptr<compute::Allocation> memory;
  std::vector<std::shared_ptr<core::MappedFile>> files;
};

}  // namespace shardrec::serving
