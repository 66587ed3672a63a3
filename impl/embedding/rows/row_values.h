// What is read or written of a table's rows, its weights or a state of its optimizer: how it stands
// in shards and in messages. Shared by rows.cpp and row_list.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compute/backend.h"
#include "compute/element.h"
#include "core/tensor.h"
#include "embedding/collection.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"
#include "plan/model/model.h"
#include "shardrec/collection.h"

namespace shardrec::embedding {

// What a request is about: the weights, or a state of the table's optimizer.
struct Values {
  int state = -1;        // -1: weights; else a number in plan::states_of
  bool by_row = false;   // one value per row and column range
  bool per_box = false;  // ... where the range is a box; else the whole row
  compute::Element element = compute::Element::kFloat32;

  size_t bytes(int64_t count) const {
    return static_cast<size_t>(count) * compute::element_bytes(element);
  }
};

// table and what must exist.
Values values_of(const plan::Model& model, int32_t table, int32_t what);
bool values_exist(const plan::Model& model, int32_t table, int32_t what);

// Elements of one row of a part in a message.
int64_t message_width(const Part& part, const Values& values);

enum class RowsWay : uint8_t { kRead, kWrite };

// Does a part send its rows to a rank that reads them, or take those that the rank writes? On a mesh cut tables do so
// within a sharding group; every replica of a table takes what any rank writes. States that groups share are of the parts
// for updates. What is one value per row is read from
// the owner of its first column.
bool concerns(const Layout& layout, const Part& part, const Values& values, RowsWay way,
              int caller);

// Calls move(column of the table, offset in the message's row, columns) for the runs of a row;
// spread: the one value at the offset stands for all the columns.
template <class Move>
void for_each_run(const Part& part, const Values& values, Move move) {
  if (!values.by_row) {
    for (const ColumnPiece& piece : part.columns) move(piece.col, piece.offset, piece.cols, false);
  } else if (!values.per_box) {
    move(0, 0, 1, false);
  } else {
    for (size_t s = 0; s < part.columns.size(); ++s) {
      move(part.columns[s].col, static_cast<int64_t>(s), part.columns[s].cols, true);
    }
  }
}

// Rows that are moved: first, first + 1, ..., or those that a list names.
struct RowNumbers {
  int64_t first = 0;
  int64_t count = 0;
  const int64_t* list = nullptr;

  // `more` of them, beginning with the i-th.
  RowNumbers part(int64_t i, int64_t more) const {
    return list != nullptr ? RowNumbers{0, more, list + i} : RowNumbers{first + i, more, nullptr};
  }
};

// Rows of a message as float32 columns of the table, in some rows of the caller's matrix, and back.
void widen_rows(compute::Backend& backend, const Part& part, const Values& values,
                const std::byte* from, const RowNumbers& rows, const core::Matrix& out);
void narrow_rows(compute::Backend& backend, const Part& part, const Values& values,
                 const core::Matrix& in, const RowNumbers& rows, std::byte* to);

// The values of one of this rank's parts, in its shard.
class StoredRows {
 public:
  StoredRows(Collection& collection, int32_t part, const Values& values);

  // Copies rows of the part to or from their place in a message.
  void copy_out(const RowNumbers& rows, std::byte* to);
  void copy_in(const RowNumbers& rows, const std::byte* from);

 private:
  // What the rows of the shard are made of: the columns of a matrix, or a column for each range.
  struct Column {
    std::byte* first = nullptr;  // of the shard's row 0
    size_t stride = 0;           // elements
    int64_t width = 0;
    int64_t offset = 0;  // in the message's row
  };

  compute::Backend& backend_;
  SnapshotPlace& snapshot_;
  ChangedRows& changed_;
  size_t shard_ = 0;
  compute::Element element_;
  size_t message_width_ = 0;  // elements of a row
  std::vector<Column> columns_;
  std::vector<compute::RowTransfer> transfers_;
};

// Runs an exchange; its failure is every rank's that would wait for this one.
template <class Body>
void or_fail(Collection& collection, const char* operation, Body body) {
  try {
    body();
  } catch (...) {
    collection.give_up(operation);
    throw;
  }
}

}  // namespace shardrec::embedding
