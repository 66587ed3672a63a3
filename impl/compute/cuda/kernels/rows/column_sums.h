// Sums over columns (kernels.h): 16 virtual lanes, the columns of each added in ascending order, then
// the fixed tree, for which an exchange between lanes whose numbers differ in one bit has the same bits.
//
// The threads of a group have neighbouring columns of a row; a virtual lane's are sixteen apart. So the
// numbers of a warp go through shared memory, and each half of a warp sums one row after the other.
#pragma once

#include "compute/cuda/kernels/rows/row_job.h"

namespace shardrec::compute::cuda {

inline constexpr int kMostGroups = kWarp / SHARDREC_CUDA_LEAST_ROW_LANES;
static_assert(kWarp == 2 * kVirtualLanes);

// Of the rows that the groups of a warp have at one time.
template <int kArrays, int kColumns>
struct SummedNumbers {
  float x[kArrays][kWarp * kColumns];  // row by row, the columns of a tile
};

template <int kSums>
struct RowTotals {
  float sum[kMostGroups][kSums];
};

// The virtual lane of the calling lane, with what was added up so far.
template <int kSums>
class ColumnSums {
 public:
  // The row that this lane works for in round i of rows_of_warp / 2.
  SHARDREC_DEVICE static int row_of(int i) { return 2 * i + lane_index() / kVirtualLanes; }

  SHARDREC_DEVICE void clear() {
#pragma unroll
    for (int k = 0; k < kSums; ++k) lane_[k] = 0;
  }

  // add_column(c, sums) for this lane's columns of a tile of `columns`.
  template <class AddColumn>
  SHARDREC_DEVICE void add(int columns, const AddColumn& add_column) {
#pragma unroll 4
    for (int c = lane_index() % kVirtualLanes; c < columns; c += kVirtualLanes) {
      add_column(c, lane_);
    }
  }

  // All lanes of the warp call it, also without a row.
  SHARDREC_DEVICE void finish(int row, int rows, RowTotals<kSums>& totals) {
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
#pragma unroll
      for (int bit = kVirtualLanes / 2; bit > 0; bit /= 2) {
        lane_[k] = math::op::add(lane_[k], __shfl_xor_sync(kAllLanes, lane_[k], bit));
      }
      if (row < rows && lane_index() % kVirtualLanes == 0) totals.sum[row][k] = lane_[k];
    }
  }

 private:
  float lane_[kSums] = {};
};

}  // namespace shardrec::compute::cuda
