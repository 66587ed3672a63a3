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

// Is it of the weights of a collection, which are what is served?
inline bool is_served(const checkpoint::ManifestTensor& tensor, int32_t collection) noexcept {
  return tensor.collection == collection && tensor.part == checkpoint::TablePart::kWeights;
}

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
  // Which rows of it have changed. whole: has each delta all columns of its rows, as every training of one plan writes
  // them? Looked at where rows are `coded`, else true.
  struct Changed {
    std::vector<compute::RowWord> bits;
    bool whole = true;
  };
  Changed changed(int32_t saved, const plan::Table& table, bool coded);
  // These rows, in memory as those of `now` lie there: a table of one slice, of one range; where it is coded, rows that
  // are whole. Reads the lists of changed() again, which does not keep them.
  std::shared_ptr<const StagedRows> stage(int32_t saved, const plan::Table& table,
                                          const ServedTable& now, Changed changed);

 private:
  struct Delta;

  void read_rows(int32_t saved, const StagedRows& to, size_t element_bytes);

  std::vector<std::unique_ptr<Delta>> deltas_;
};

// Bytes that a reader reads of the weights of a collection, and twice of the lists of their rows.
int64_t bytes_of_changes(std::span<const checkpoint::Opened* const> deltas, int32_t collection);

}  // namespace shardrec::serving
