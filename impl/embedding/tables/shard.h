// This rank's piece of a table: the weights of one part and its optimizer state. Where parts are for lookups or for updates
// alone, the former have no state, and the latter the weights of the former.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compute/backend.h"
#include "compute/table_rows.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

// A matrix of a shard, all of its rows side by side: its weights, or a state of its optimizer.
struct Sheet {
  std::byte* data = nullptr;
  compute::Element element = compute::Element::kFloat32;
  size_t width = 0;  // elements of a row

  size_t row_bytes() const { return width * compute::element_bytes(element); }
};

class Shard {
 public:
  // Allocates; fill() gives the weights their initial values, the state is 0. others: of the rank, those of the parts
  // before, among them the one whose weights those of a part for updates are.
  Shard(const Layout& layout, int32_t part, compute::Memory& memory,
        std::span<const Shard> others = {});

  // Values depend on (seed, table name, row, column) only.
  void fill(const Layout& layout, int64_t seed, compute::Backend& backend);

  int32_t part() const { return part_; }
  int32_t table() const { return table_; }
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  compute::Element element() const { return element_; }
  // Row r begins at element r * width().
  std::byte* weights() { return weight_data_; }
  const std::byte* weights() const { return weight_data_; }
  // Columns [offset, offset + width) of all rows, or all of them.
  compute::TableRows table_rows(int64_t offset, int64_t width) const {
    return {weights() + static_cast<size_t>(offset) * compute::element_bytes(element_), element_,
            static_cast<size_t>(width_), width};
  }
  compute::TableRows table_rows() const { return table_rows(0, width_); }
  size_t row_bytes() const {
    return static_cast<size_t>(width_) * compute::element_bytes(element_);
  }

  // The column ranges over which what is kept or computed once per row is taken: the part's columns
  // together, or each box's. Never empty.
  const std::vector<compute::ColumnRange>& columns() const { return columns_; }
  // State k of the optimizer (plan::states_of), where it is one value per element: [rows, width].
  float* matrix(size_t k) const { return matrices_[k]; }
  // ... where it is one value per row: of columns()[range], [rows].
  float* row_values(size_t k, size_t range) const {
    return row_values_[(k - matrices_.size()) * columns_.size() + range];
  }
  // All of these: the weights, the matrices in their order, then the row values, by state and range.
  std::vector<Sheet> sheets() const;
  size_t sheet_of_matrix(size_t k) const { return 1 + k; }
  size_t sheet_of_row_values(size_t k, size_t range) const {
    return 1 + matrices_.size() + (k - matrices_.size()) * columns_.size() + range;
  }
  // Are the weights those of another shard?
  bool borrows_weights() const { return weights_ == nullptr; }
  // Where an update finds all this.
  void describe(compute::RowUpdate& job) const;

  size_t memory() const {
    return (weights_ == nullptr ? 0 : weights_->size) +
           (state_memory_ == nullptr ? 0 : state_memory_->size);
  }

  // Bytes that the shard of a part takes.
  static uint64_t bytes_of(const Layout& layout, int32_t part);

 private:
  int32_t part_ = 0;
  int32_t table_ = 0;
  int64_t first_row_ = 0;
  int64_t rows_ = 0;
  int64_t width_ = 0;
  compute::Element element_ = compute::Element::kFloat32;
  std::byte* weight_data_ = nullptr;
  std::unique_ptr<compute::Allocation> weights_;       // null: another shard's
  std::unique_ptr<compute::Allocation> state_memory_;  // null: none, for lookups
  std::vector<float*> matrices_;
  std::vector<float*> row_values_;  // [value * ranges + range]
  std::vector<compute::ColumnRange> columns_;
  std::vector<compute::ColumnMap> column_map_;
};

using compute::element_of;

// Which of the shards has the weights of a part for updates.
size_t shard_with_weights(const Layout& layout, std::span<const Shard> shards, const Part& part);

// By block of this rank (Layout::blocks_of): the number of the shard that has its rows.
std::vector<size_t> shards_of_blocks(const Layout& layout);

// Columns of a part's rows that are side by side in the table too, a range of offsets for each run.
std::vector<compute::ColumnRange> adjacent_columns(const Part& part);

// The column ranges that a part contributes to what is taken over whole rows, where other ranks own
// columns of them too; none where rows are whole or statistics are per box. The same answer on all
// ranks.
std::vector<compute::ColumnRange> shared_statistic_ranges(const Layout& layout, int32_t part);

}  // namespace shardrec::embedding
