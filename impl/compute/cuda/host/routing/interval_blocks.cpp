#include "compute/cuda/host/routing/interval_blocks.h"

#include <algorithm>

namespace shardrec::compute::cuda::host {
namespace {

// Calls visit(interval, target) for all targets, by interval.
template <class Visit>
void for_each_target(const RoutedIds& feature, Visit visit) {
  const RowIntervals& intervals = *feature.intervals;
  for (size_t i = 0; i < intervals.count(); ++i) {
    for (int32_t n = intervals.first_target[i]; n < intervals.first_target[i + 1]; ++n) {
      visit(i, feature.targets[static_cast<size_t>(n)]);
    }
  }
}

}  // namespace

// A counting sort of the targets by their blocks.
void IntervalBlocks::list_intervals(const RoutedIds& feature) {
  first_interval_.assign(feature.blocks.size() + 1, 0);
  for_each_target(feature, [&](size_t, const BlockTarget& target) {
    const auto number = static_cast<size_t>(number_[target.block]);
    ++first_interval_[number + 1];
  });
  for (size_t b = 0; b < feature.blocks.size(); ++b) first_interval_[b + 1] += first_interval_[b];
  intervals_.resize(first_interval_.back());
  // Each start moves to the end of its block, which is the start of the next one, and back.
  for_each_target(feature, [&](size_t interval, const BlockTarget& target) {
    const auto number = static_cast<size_t>(number_[target.block]);
    intervals_[first_interval_[number]++] = static_cast<int32_t>(interval);
  });
  for (size_t b = feature.blocks.size(); b > 0; --b) first_interval_[b] = first_interval_[b - 1];
  first_interval_[0] = 0;
}

void IntervalBlocks::clear() {
  table_.clear();
  rows_.clear();
}

IntervalBlocks::Part IntervalBlocks::add(const RoutedIds& feature, size_t blocks) {
  number_.resize(blocks);
  for (size_t b = 0; b < feature.blocks.size(); ++b) {
    number_[feature.blocks[b]] = static_cast<int32_t>(b);
  }
  list_intervals(feature);
  Part part{.first = table_.size(), .first_row = rows_.size()};
  rows_.resize(rows_.size() + feature.blocks.size());
  for_each_target(feature, [&](size_t, const BlockTarget& target) {
    rows_[part.first_row + static_cast<size_t>(number_[target.block])] = target.row;
  });
  const size_t count = feature.intervals->count();
  const auto entry = [&](size_t column, int32_t interval) -> int32_t& {
    return table_[part.first + column * count + static_cast<size_t>(interval)];
  };
  size_t columns = 0;
  for (size_t b = 0; b < feature.blocks.size(); ++b) {
    const std::span<const int32_t> mine(intervals_.data() + first_interval_[b],
                                        intervals_.data() + first_interval_[b + 1]);
    // The first column that is free in all intervals of the block.
    size_t column = 0;
    const auto is_free = [&](int32_t interval) { return entry(column, interval) < 0; };
    while (column < columns && !std::ranges::all_of(mine, is_free)) ++column;
    if (column == columns) {
      ++columns;
      table_.resize(table_.size() + count, -1);
    }
    for (const int32_t interval : mine) entry(column, interval) = static_cast<int32_t>(b);
  }
  part.columns = static_cast<int32_t>(columns);
  return part;
}

}  // namespace shardrec::compute::cuda::host
