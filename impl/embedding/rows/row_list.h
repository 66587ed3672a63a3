// Rows of a table that are named by a list of ids, read and written wherever they live. Both are
// exchanges on the collection's ordered channel: collective, each rank with a list of its own.
//
// A long list goes in blocks, so that what a rank sends and receives at once stays below a bound
// whatever the ranks ask for. Where several entries write the same row, the last entry of the
// highest rank stays, also when it went in an earlier block than another rank's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor.h"
#include "embedding/collection.h"
#include "shardrec/collection.h"

namespace shardrec::embedding {

struct RowList {
  int32_t table = 0;
  shardrec_table_part what = SHARDREC_TABLE_WEIGHTS;
  core::FlatView ids;  // rows of the table, int32 or int64, in any order, any of them repeatedly

  int64_t id(int64_t position) const {
    const auto at = static_cast<size_t>(position);
    return ids.dtype == SHARDREC_INT32 ? ids.as<const int32_t>()[at] : ids.as<const int64_t>()[at];
  }
};

// Bytes of rows and ids that go through a rank at once.
constexpr size_t kRowListBytes = size_t{64} << 20;

// Columns of what is read or written, as row_width() of a range. Throws NOT_FOUND, and
// INVALID_ARGUMENT for an id that is no row, with its position; exchanges nothing.
int64_t row_width(const Collection& collection, const RowList& list);

// out, values: a row per id.
void read_rows(Collection& collection, const RowList& list, const core::Matrix& out,
               size_t bytes_at_once = kRowListBytes);
void write_rows(Collection& collection, const RowList& list, const core::Matrix& values,
                size_t bytes_at_once = kRowListBytes);

}  // namespace shardrec::embedding
