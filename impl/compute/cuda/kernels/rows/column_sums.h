// Sums over columns (kernels.h): 16 virtual lanes, the columns of each added in ascending order, then
// the fixed tree, for which an exchange between lanes whose numbers differ in one bit has the same bits.
//
// The threads of a group have neighbouring columns of a row; a virtual lane's are sixteen apart. So the
// numbers of a warp go through shared memory, and each half of a warp sums one row after the other.
#pragma once

#include "compute/cuda/kernels/rows/row_job.h"

namespace shardrec::compute::cuda {

static_assert(kWarp == 2 * kVirtualLanes);

// Where a row's columns lie: rows begin at multiples of 16 numbers. The halves of a warp read rows that
// are neighbours; where these would begin in the same bank, sixteens of the second one change places in
// pairs.
class SummedRow {
 public:
  SHARDREC_DEVICE SummedRow(int row, int columns) {
    const int stride = (columns + kVirtualLanes - 1) & -kVirtualLanes;
    begin_ = row * stride;
    turn_ = (stride & kVirtualLanes) == 0 ? (row & 1) * kVirtualLanes : 0;
  }
  SHARDREC_DEVICE int at(int column) const { return begin_ + (column ^ turn_); }
  // Of columns 0 to 15, and of 16 to 31; those of each 32 columns lie 32 after the ones before.
  SHARDREC_DEVICE int even() const { return begin_ + turn_; }
  SHARDREC_DEVICE int odd() const { return begin_ + kVirtualLanes - turn_; }

 private:
  int begin_;
  int turn_;
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

  // add_column(at, sums) for this lane's columns of a row, which are so many.
  template <class AddColumn>
  SHARDREC_DEVICE void add(const SummedRow& row, int columns, const AddColumn& add_column) {
    const int lane = lane_index() % kVirtualLanes;
    int even = row.even() + lane;
    int odd = row.odd() + lane;
    int left = columns - lane;
    constexpr int kTogether = 2 * kWarp;
#pragma unroll 1
    for (; left > kTogether - kVirtualLanes; left -= kTogether) {
#pragma unroll
      for (int at = 0; at < kTogether; at += kWarp) {
        add_column(even + at, lane_);
        add_column(odd + at, lane_);
      }
      even += kTogether;
      odd += kTogether;
    }
#pragma unroll 1
    for (; left > 0; left -= kWarp) {
      add_column(even, lane_);
      if (left > kVirtualLanes) add_column(odd, lane_);
      even += kWarp;
      odd += kWarp;
    }
  }

  // All lanes of the warp call it, also without a row. The sums are in all lanes of the half.
  SHARDREC_DEVICE void finish() {
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
#pragma unroll
      for (int bit = kVirtualLanes / 2; bit > 0; bit /= 2) {
        lane_[k] = math::op::add(lane_[k], __shfl_xor_sync(kAllLanes, lane_[k], bit));
      }
    }
  }

  SHARDREC_DEVICE float operator[](int k) const { return lane_[k]; }

 private:
  float lane_[kSums] = {};
};

}  // namespace shardrec::compute::cuda
