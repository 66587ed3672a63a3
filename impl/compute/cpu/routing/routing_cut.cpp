// Routing of features whose table is cut in any way: every id goes to the targets of its interval.
#include <cstring>

#include "compute/cpu/routing/routing.h"
#include "compute/cpu/routing/routing_ids.h"

namespace shardrec::compute::cpu {
namespace {

template <class Id>
CheckedIds count_ids(const RoutedIds& feature, const Id* ids, const BlockCounts& counts) {
  const RowIntervals& intervals = *feature.intervals;
  CheckedIds checked;
  int64_t i = 0;
  for (int64_t sample = 0; sample < feature.bags; ++sample) {
    const uint32_t length = feature.lengths[sample];
    uint32_t kept = length;
    for (const int64_t bag_end = i + length; i < bag_end; ++i) {
      int64_t row = ids[i];
      if (!in_range(row, feature.rows)) {
        if (!admit(feature, feature.first + i, row, checked)) return checked;
        if (row < 0) {
          --kept;
          continue;
        }
      }
      const size_t interval = interval_of(intervals, row);
      for (int32_t n = intervals.first_target[interval]; n < intervals.first_target[interval + 1];
           ++n) {
        const size_t block = feature.targets[static_cast<size_t>(n)].block;
        const auto bag = static_cast<uint32_t>(sample) + 1;
        ++counts.counts[block].ids;
        counts.counts[block].bags += counts.last_bag[block] != bag;
        counts.last_bag[block] = bag;
      }
    }
    if (feature.kept_lengths != nullptr) feature.kept_lengths[sample] = kept;
  }
  return checked;
}

// Rows and ids before each chunk up to that of an item are known when its first row is written.
void reach(const BlockSections& to, WriteCursor& cursor, int64_t item, uint32_t rows_before) {
  for (; cursor.next_chunk * kChunk <= item; ++cursor.next_chunk) {
    to.chunk_rows[cursor.next_chunk] = rows_before;
    to.chunk_ids[cursor.next_chunk] = cursor.ids;
  }
}

template <class WireId, class Id>
void write_ids(const RoutedIds& feature, const Id* ids, const WrittenBlocks& blocks,
               std::span<WriteCursor> cursors) {
  const RowIntervals& intervals = *feature.intervals;
  for (const uint32_t block : feature.blocks) {
    if (uint32_t* const dense = blocks[block].dense_lengths; dense != nullptr) {
      std::memset(dense, 0, static_cast<size_t>(feature.bags) * sizeof(uint32_t));
    }
  }
  int64_t i = 0;
  for (int64_t sample = 0; sample < feature.bags; ++sample) {
    const auto bag = static_cast<uint32_t>(sample) + 1;
    for (const int64_t bag_end = i + feature.lengths[sample]; i < bag_end; ++i) {
      const int64_t row = row_for(ids[i], feature.rows, feature.policy);
      if (row < 0) {
        if (feature.interval_of != nullptr) feature.interval_of[i] = kDroppedId;
        continue;
      }
      const size_t interval = interval_of(intervals, row);
      if (feature.interval_of != nullptr) feature.interval_of[i] = static_cast<int32_t>(interval);
      for (int32_t n = intervals.first_target[interval]; n < intervals.first_target[interval + 1];
           ++n) {
        const BlockTarget& target = feature.targets[static_cast<size_t>(n)];
        const size_t place = blocks.place(target.block);
        const BlockSections& to = blocks.sections()[place];
        WriteCursor& cursor = cursors[place];
        if (feature.sequence) reach(to, cursor, i, cursor.ids);
        if (cursor.last_bag != bag) {
          if (!feature.sequence) reach(to, cursor, sample, cursor.bags);
          if (to.sparse_lengths != nullptr) {
            to.sparse_lengths[cursor.bags] = {static_cast<uint32_t>(sample), 0};
          }
          ++cursor.bags;
          cursor.last_bag = bag;
        }
        if (to.sparse_lengths != nullptr) {
          ++to.sparse_lengths[cursor.bags - 1].count;
        } else {
          ++to.dense_lengths[sample];
        }
        static_cast<WireId*>(to.ids)[cursor.ids] = static_cast<WireId>(row - target.row);
        if (to.weights != nullptr) to.weights[cursor.ids] = feature.weights[feature.first + i];
        ++cursor.ids;
      }
    }
  }
  for (const uint32_t block : feature.blocks) {
    WriteCursor& cursor = cursors[blocks.place(block)];
    reach(blocks[block], cursor, feature.chunks() * kChunk,
          feature.sequence ? cursor.ids : cursor.bags);
  }
}

}  // namespace

CheckedIds count_cut(const RoutedIds& feature, const BlockCounts& counts) {
  return with_ids(feature, [&](const auto* ids) { return count_ids(feature, ids, counts); });
}

void write_cut(const RoutedIds& feature, const WrittenBlocks& blocks,
               std::span<WriteCursor> cursors) {
  with_ids(feature, [&](const auto* ids) {
    feature.writes_64 ? write_ids<int64_t>(feature, ids, blocks, cursors)
                      : write_ids<int32_t>(feature, ids, blocks, cursors);
  });
}

}  // namespace shardrec::compute::cpu
