// Which blocks of a feature the ids of each interval of rows go to, as kernels read it: a table of
// columns, [columns][intervals], in which each block has one column, and an interval one block at most
// per column. Lanes of a warp whose ids go to the same block then meet in its column.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/routing_operations.h"

namespace shardrec::compute::cuda::host {

class IntervalBlocks {
 public:
  // The table of a feature.
  struct Part {
    size_t first = 0;  // in table()
    int32_t columns = 0;
    size_t first_row = 0;  // in first_rows()
  };

  void clear();
  // Appends that of a feature with intervals. blocks: of the call.
  Part add(const RoutedIds& feature, size_t blocks);

  // Of all features: numbers among RoutedIds::blocks, -1 for none.
  std::span<const int32_t> table() const { return table_; }
  // The first row of the range of each block of each feature.
  std::span<const int64_t> first_rows() const { return rows_; }

 private:
  void list_intervals(const RoutedIds& feature);

  std::vector<int32_t> table_;
  std::vector<int64_t> rows_;
  std::vector<int32_t> number_;         // by block of the call
  std::vector<size_t> first_interval_;  // [blocks of the feature + 1], into intervals_
  std::vector<int32_t> intervals_;      // of each block, ascending
};

}  // namespace shardrec::compute::cuda::host
