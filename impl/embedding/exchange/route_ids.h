// One id on its way to the ranges of rows of its table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "embedding/batch/verdict.h"
#include "embedding/tables/layout.h"

namespace shardrec::embedding {

// row / even, by Routing::reciprocal.
inline size_t divided(int64_t row, uint64_t reciprocal) {
  __extension__ using Product = unsigned __int128;
  return static_cast<size_t>((static_cast<Product>(row) * reciprocal) >> 64);
}

// The interval of a row that is in range.
inline size_t interval_of(const Routing& routing, int64_t row) {
  if (routing.reciprocal != 0) return divided(row, routing.reciprocal);
  if (routing.even != 0) return static_cast<size_t>(row / routing.even);
  const auto above = std::upper_bound(routing.cuts.begin() + 1, routing.cuts.end() - 1, row);
  return static_cast<size_t>(above - routing.cuts.begin()) - 1;
}

// One unsigned comparison finds negative ids as well.
inline bool in_range(int64_t id, int64_t rows) {
  return static_cast<uint64_t>(id) < static_cast<uint64_t>(rows);
}

// The row that stands for an id that the policy accepts; negative: none.
inline int64_t row_for(int64_t id, int64_t rows, shardrec_out_of_range policy) {
  if (in_range(id, rows)) return id;
  return policy == SHARDREC_OUT_OF_RANGE_CLAMP ? 0 : -1;
}

inline Verdict bad_id(int32_t feature, int64_t position, int64_t id, int64_t rows) {
  return {.defect = Defect::kIdRange,
          .argument = Argument::kValues,
          .feature = feature,
          .position = position,
          .value = id,
          .limit = rows};
}

}  // namespace shardrec::embedding
