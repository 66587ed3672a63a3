// Routing of features whose table is cut in any way: every id goes to the targets of its interval.
#include <cstring>

#include "compute/cpu/routing/routing.h"
#include "compute/cpu/routing/routing_ids.h"

namespace shardrec::compute::cpu {
namespace {

template <class Id>
CheckedIds count_ids(const RoutedIds& feature, const Id* ids, std::span<BlockWriter> writers) {
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
        BlockWriter& writer = writers[feature.targets[static_cast<size_t>(n)].block];
        ++writer.ids_done;
        writer.bags_done += writer.last_sample != sample;
        writer.last_sample = sample;
      }
    }
    if (feature.kept_lengths != nullptr) feature.kept_lengths[sample] = kept;
  }
  return checked;
}

// Rows and ids before each chunk up to that of an item are known when its first row is written.
void reach(BlockWriter& writer, int64_t item, int64_t rows_before) {
  for (; writer.next_chunk * kChunk <= item; ++writer.next_chunk) {
    writer.chunk_rows[writer.next_chunk] = static_cast<uint32_t>(rows_before);
    writer.chunk_ids[writer.next_chunk] = static_cast<uint32_t>(writer.ids_done);
  }
}

template <class WireId, class Id>
void write_ids(const RoutedIds& feature, const Id* ids, std::span<BlockWriter> writers) {
  const RowIntervals& intervals = *feature.intervals;
  for (const uint32_t block : feature.blocks) {
    if (uint32_t* const dense = writers[block].dense_lengths; dense != nullptr) {
      std::memset(dense, 0, static_cast<size_t>(feature.bags) * sizeof(uint32_t));
    }
  }
  int64_t i = 0;
  for (int64_t sample = 0; sample < feature.bags; ++sample) {
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
        BlockWriter& writer = writers[target.block];
        if (feature.sequence) reach(writer, i, writer.ids_done);
        if (writer.last_sample != sample) {
          if (!feature.sequence) reach(writer, sample, writer.bags_done);
          if (writer.sparse_lengths != nullptr) {
            writer.sparse_lengths[writer.bags_done] = {static_cast<uint32_t>(sample), 0};
          }
          ++writer.bags_done;
          writer.last_sample = sample;
        }
        if (writer.sparse_lengths != nullptr) {
          ++writer.sparse_lengths[writer.bags_done - 1].count;
        } else {
          ++writer.dense_lengths[sample];
        }
        static_cast<WireId*>(writer.ids)[writer.ids_done] = static_cast<WireId>(row - target.row);
        if (writer.weights != nullptr) {
          writer.weights[writer.ids_done] = feature.weights[feature.first + i];
        }
        ++writer.ids_done;
      }
    }
  }
  for (const uint32_t block : feature.blocks) {
    BlockWriter& writer = writers[block];
    reach(writer, feature.chunks() * kChunk, feature.sequence ? writer.ids_done : writer.bags_done);
  }
}

}  // namespace

CheckedIds count_cut(const RoutedIds& feature, std::span<BlockWriter> writers) {
  return with_ids(feature, [&](const auto* ids) { return count_ids(feature, ids, writers); });
}

void write_cut(const RoutedIds& feature, std::span<BlockWriter> writers) {
  with_ids(feature, [&](const auto* ids) {
    feature.writes_64 ? write_ids<int64_t>(feature, ids, writers)
                      : write_ids<int32_t>(feature, ids, writers);
  });
}

}  // namespace shardrec::compute::cpu
