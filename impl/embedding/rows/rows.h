// Rows of a table, read and written wherever they live. Both are exchanges on the collection's
// ordered channel: collective, each rank with a range of its own.
#pragma once

#include <cstdint>

#include "core/tensor.h"
#include "embedding/collection.h"
#include "shardrec/collection.h"

namespace shardrec::embedding {

struct RowRange {
  int32_t table = 0;
  shardrec_table_part what = SHARDREC_TABLE_WEIGHTS;
  int64_t row = 0;
  int64_t rows = 0;
};

// Columns of what is read or written: the dim, or 1 for what is one value per row (the dim again
// where it is one per box). Weights of any dtype are read and written as float32, rounded to
// nearest. Throws NOT_FOUND, INVALID_ARGUMENT for a range that does not exist; exchanges nothing.
int64_t row_width(const Collection& collection, const RowRange& range);

void read_rows(Collection& collection, const RowRange& range, const core::Matrix& out);
// Where several ranks write the same row, the highest rank's values stay.
void write_rows(Collection& collection, const RowRange& range, const core::Matrix& values);

}  // namespace shardrec::embedding
