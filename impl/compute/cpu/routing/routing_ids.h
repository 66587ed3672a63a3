// One id on its way to the intervals of rows of its table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "compute/routing_operations.h"

namespace shardrec::compute::cpu {

// row / even, by RowIntervals::reciprocal; row is not negative.
inline size_t divided(int64_t row, uint64_t reciprocal) {
  __extension__ using Product = unsigned __int128;
  return static_cast<size_t>((static_cast<Product>(static_cast<uint64_t>(row)) * reciprocal) >> 64);
}

// The interval of a row that is in range.
inline size_t interval_of(const RowIntervals& intervals, int64_t row) {
  if (intervals.reciprocal != 0) return divided(row, intervals.reciprocal);
  if (intervals.even != 0) return static_cast<size_t>(row / intervals.even);
  const auto above = std::upper_bound(intervals.cuts.begin() + 1, intervals.cuts.end() - 1, row);
  return static_cast<size_t>(above - intervals.cuts.begin()) - 1;
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

// An id outside the table, at `position`: the row that stands for it, negative for none. False: it
// is refused.
inline bool admit(const RoutedIds& feature, int64_t position, int64_t& row, CheckedIds& checked) {
  if (feature.policy == SHARDREC_OUT_OF_RANGE_ERROR) {
    checked.wrong = {.position = position, .value = row};
    return false;
  }
  ++checked.out_of_range;
  row = row_for(row, feature.rows, feature.policy);
  return true;
}

// Calls body with the first id of the feature, as a pointer to int32 or int64.
template <class Body>
auto with_ids(const RoutedIds& feature, Body body) {
  return feature.ids.is_64 ? body(static_cast<const int64_t*>(feature.ids.data) + feature.first)
                           : body(static_cast<const int32_t*>(feature.ids.data) + feature.first);
}

}  // namespace shardrec::compute::cpu
