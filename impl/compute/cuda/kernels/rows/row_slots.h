// Which columns of which rows a lane has of a wave (row_update.h).
#pragma once

#include "compute/cuda/kernels/rows/column_sums.h"

namespace shardrec::compute::cuda {

// Cheaper to find out for each use than to keep.
template <int kColumns, bool kWide>
class RowSlots {
 public:
  SHARDREC_DEVICE RowSlots(const shardrec_cuda_row_job& job, int rows, int tile)
      : group_(lane_group(anew(job.lanes))),
        part_bits_(kWide ? job.part_bits : 0),
        columns_(job.columns),
        rows_(rows),
        first_(kWide ? tile * of_tile() : 0) {}

  // The row's number in the wave, and the column in the job.
  SHARDREC_DEVICE int row(int slot) const {
    return (kWide ? slot >> part_bits_ : slot) * group_.groups + group_.number;
  }
  SHARDREC_DEVICE int column(int slot) const { return first_ + column_in_tile(slot); }
  SHARDREC_DEVICE bool has(int slot) const { return row(slot) < rows_ && column(slot) < columns_; }
  // A slot without columns loads some that it does not use, so that loads need no branches.
  SHARDREC_DEVICE int some_column(int slot) const {
    return column(slot) < columns_ ? column(slot) : 0;
  }
  // Where the first column is in lists of numbers.
  SHARDREC_DEVICE int place(int slot) const {
    return SummedRow(row(slot), columns_of_tile()).at(column_in_tile(slot));
  }
  SHARDREC_DEVICE int columns_of_tile() const {
    return columns_ - first_ < of_tile() ? columns_ - first_ : of_tile();
  }

 private:
  SHARDREC_DEVICE int of_tile() const { return (group_.lanes * kColumns) << part_bits_; }
  SHARDREC_DEVICE int column_in_tile(int slot) const {
    const int part = kWide ? slot & ((1 << part_bits_) - 1) : 0;
    return (part * group_.lanes + group_.lane) * kColumns;
  }

  LaneGroup group_;
  int part_bits_;
  int columns_;
  int rows_;
  int first_;  // column of the tile
};

}  // namespace shardrec::compute::cuda
