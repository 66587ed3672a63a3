// What is read or written of a table's rows, its weights or a state of its optimizer: how it stands
// in shards and in messages. Shared by rows.cpp and row_list.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "compute/element.h"
#include "embedding/collection.h"
#include "embedding/tables/layout.h"
#include "embedding/tables/shard.h"
#include "plan/model.h"
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

// Does the owner of a part send it to a reader? What is one value per row comes from the owner of
// its first column.
bool sends(const Layout& layout, const Part& part, const Values& values, int reader);

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

// A row of a message as float32 columns of the table, and back.
void widen_row(const compute::Kernels& kernels, const Part& part, const Values& values,
               const std::byte* from, float* row);
void narrow_row(const compute::Kernels& kernels, const Part& part, const Values& values,
                const float* row, std::byte* to);

// The values of one of this rank's parts, in its shard.
class StoredRows {
 public:
  StoredRows(Collection& collection, int32_t part, const Values& values);

  // Copies `count` rows from the part's row `first` on, to or from their place in a message.
  void copy_out(int64_t first, int64_t count, std::byte* to) const;
  void copy_in(int64_t first, int64_t count, const std::byte* from) const;

 private:
  Shard& shard_;
  Values values_;
  int64_t width_;
};

struct Messages {
  explicit Messages(int ranks)
      : buffer(std::make_shared<std::vector<std::byte>>()), parts(static_cast<size_t>(ranks)) {}
  std::shared_ptr<std::vector<std::byte>> buffer;
  std::vector<comm::ConstBytes> parts;
};

// CORRUPT_DATA: what `rank` has sent is no message of the operation.
[[noreturn]] void throw_malformed(size_t rank, const char* operation);

// Runs an exchange; its failure is the communicator's, so that peers do not wait.
template <class Body>
void or_fail(Collection& collection, const char* operation, Body body) {
  try {
    body();
  } catch (...) {
    collection.communicator().fail(operation);
    throw;
  }
}

}  // namespace shardrec::embedding
