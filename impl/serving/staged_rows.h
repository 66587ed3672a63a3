// The rows of a served table that deltas have changed, read and verified beside the table: a version can read them
// there while the table has its old rows, until they are written into it.
//
// Thread rule: immutable once it is made; write_to() by one thread, while nobody reads these rows of the table.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/read/load.h"
#include "compute/buffer.h"
#include "compute/row_bits.h"
#include "core/control.h"
#include "core/environment.h"
#include "plan/model/model.h"
#include "serving/served_table.h"

namespace shardrec::serving {

class StagedRows {
 public:
  StagedRows(std::vector<compute::RowWord> bits, size_t row_bytes);

  int64_t count() const noexcept { return count_; }
  const std::vector<compute::RowWord>& bits() const noexcept { return bits_; }
  bool has(int64_t row) const noexcept {
    return (bits_[static_cast<size_t>(row / compute::kRowsOfAWord)] & compute::bit_of_row(row)) !=
           0;
  }
  // Of a row that is here.
  std::byte* at(int64_t row) const noexcept {
    const auto word = static_cast<size_t>(row / compute::kRowsOfAWord);
    const compute::RowWord below = compute::bit_of_row(row) - 1;
    return memory_->data +
           static_cast<size_t>(before_[word] + std::popcount(bits_[word] & below)) * row_bytes_;
  }
  template <class Take>
  void for_each(Take take) const {
    for (size_t word = 0; word < bits_.size(); ++word) {
      for (compute::RowWord rest = bits_[word]; rest != 0; rest &= rest - 1) {
        take(static_cast<int64_t>(word) * compute::kRowsOfAWord + std::countr_zero(rest));
      }
    }
  }
  void write_to(const ServedTable& table) const noexcept;

 private:
  std::vector<compute::RowWord> bits_;
  std::vector<int64_t> before_;  // by word: rows in the words before
  size_t row_bytes_;
  int64_t count_ = 0;
  std::unique_ptr<compute::Allocation> memory_;
};

// What deltas have changed of the tables of a collection, with all that reading it needs.
class DeltaReader {
 public:
  // deltas: one behind the other, of one chain. control may be null.
  DeltaReader(std::span<const checkpoint::Opened* const> deltas, int32_t collection,
              core::Control* control, core::Environment& environment);
  ~DeltaReader();

  // Does any of them change a row of this table, by its number in the manifests?
  bool changes(int32_t saved) const;
  // Its rows, in memory as those of `now` lie there: a table of one slice, of one range. Null: none has changed, or
  // the table is coded and of some row not all columns are in a delta, as no training of one plan writes it.
  struct Staged {
    std::shared_ptr<const StagedRows> rows;
    bool complete = true;  // else nothing was staged
  };
  Staged stage(int32_t saved, const plan::Table& table, const ServedTable& now);

 private:
  struct Delta;

  std::vector<compute::RowWord> changed_bits(int32_t saved, int64_t rows);
  // Elements of the rows, in `to`; false: of some row columns are missing.
  bool read_rows(int32_t saved, const StagedRows& to, size_t element_bytes,
                 const plan::Table& table);

  std::vector<std::unique_ptr<Delta>> deltas_;
};

// Bytes that a reader reads of the weights of a collection, and of the lists of their rows.
int64_t bytes_of_changes(std::span<const checkpoint::Opened* const> deltas, int32_t collection);

}  // namespace shardrec::serving
