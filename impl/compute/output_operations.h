// Operations on the way of partial sums from their owners to outputs (operations.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compute/bags.h"
#include "compute/element.h"

namespace shardrec::compute {

// Some columns of partial sums of one part: a row per sample whose bit is set, in their order.
struct PresentRows {
  const uint64_t* present = nullptr;  // a bit per sample
  const float* rows = nullptr;
  int64_t stride = 0;  // between rows
};

// Sums of what the parts of a node have of each sample of a source, in the order of the addends:
// out = [samples of which any addend has a row, cols].
struct NodeSum {
  std::span<const PresentRows> addends;
  int64_t samples = 0;
  int64_t cols = 0;
  float* out = nullptr;
};

}  // namespace shardrec::compute
