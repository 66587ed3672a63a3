// This rank's piece of a table: the weights of one part and its optimizer state.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/kernels.h"
#include "core/memory.h"
#include "core/threads.h"
#include "embedding/layout.h"

namespace shardrec::embedding {

class Shard {
 public:
  // Allocates; fill() gives the weights their initial values, the state is 0.
  Shard(const Layout& layout, int32_t part);

  // Values depend on (seed, table name, row, column) only.
  void fill(const Layout& layout, int64_t seed, core::Threads& threads);

  int32_t part() const { return part_; }
  int64_t rows() const { return rows_; }
  int64_t width() const { return width_; }
  float* weights() { return static_cast<float*>(static_cast<void*>(weights_.data())); }
  const float* weights() const {
    return static_cast<const float*>(static_cast<const void*>(weights_.data()));
  }
  // Row-wise state: one value per row for each of columns(); none for SGD.
  const std::vector<compute::ColumnRange>& columns() const { return columns_; }
  float* const* state() const { return state_.data(); }
  // Is the row's statistic a sum over several column owners (shared_statistic_ranges)?
  bool statistic_is_shared() const { return statistic_is_shared_; }
  size_t memory() const { return weights_.size() + state_memory_.size(); }

  // Bytes that the shard of a part takes.
  static uint64_t bytes_of(const Layout& layout, int32_t part);

 private:
  int32_t part_ = 0;
  int64_t rows_ = 0;
  int64_t width_ = 0;
  core::Pages weights_;
  core::Pages state_memory_;
  std::vector<float*> state_;
  std::vector<compute::ColumnRange> columns_;
  bool statistic_is_shared_ = false;
};

// The column ranges that a part adds to a row statistic which it shares with other column owners;
// none where rows are whole or statistics are per box. The same answer on all ranks.
std::vector<compute::ColumnRange> shared_statistic_ranges(const Layout& layout, int32_t part);

}  // namespace shardrec::embedding
