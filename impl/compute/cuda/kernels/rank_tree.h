// The reproducible sum over ranks (comm/collective/reduce.h), of one number of each.
#pragma once

#include "compute/cuda/kernels/device.h"

namespace shardrec::compute::cuda {

// The levels of most trees: a machine has no more GPUs.
inline constexpr int kFewLevels = 4;

// A pairwise tree over fewer than 2^kLevels ranks, which come in order: level l holds the sum of 2^l
// ranks for which there is no equal one yet. Ranks that have nothing to add are left out.
template <int kLevels>
class RankTree {
 public:
  SHARDREC_DEVICE void add(int32_t rank, bool has, float x) {
    bool is_placed = false;
#pragma unroll
    for (int l = 0; l < kLevels; ++l) {
      const bool is_free = (rank >> l & 1) == 0;
      if (!is_placed && is_free) {
        level_[l] = x;
        has_ = has ? has_ | 1U << l : has_ & ~(1U << l);
      }
      is_placed |= is_free;
      if (!is_placed) join(l, level_[l], has, x);
    }
  }
  // Of all `ranks` ranks; one of them has something.
  SHARDREC_DEVICE float sum(int32_t ranks) const {
    bool has = false;
    float x = 0;
#pragma unroll
    for (int l = 0; l < kLevels; ++l) {
      if ((ranks >> l & 1) != 0) join(l, level_[l], has, x);
    }
    return x;
  }

 private:
  SHARDREC_DEVICE void join(int l, float before, bool& has, float& x) const {
    if ((has_ >> l & 1U) == 0) return;
    x = has ? __fadd_rn(before, x) : before;
    has = true;
  }

  float level_[kLevels] = {};
  uint32_t has_ = 0;
};

}  // namespace shardrec::compute::cuda
