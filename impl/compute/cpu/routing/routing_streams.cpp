// Routing of pooled features whose table is cut into ranges of rows, each of which goes to its
// blocks as a whole: a stream of ids and bags per range, written once and copied for the other
// blocks that hold it. What concerns a bag is noted when it ends, not with each of its ids, as for
// any cut (routing_cut.cpp).
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "compute/cpu/routing/routing.h"
#include "compute/cpu/routing/routing_ids.h"

namespace shardrec::compute::cpu {
namespace {

// Calls visit with what tells the range of a row: the usual way is chosen here, not with every id.
template <class Visit>
void with_interval(const RowIntervals& intervals, Visit visit) {
  if (const uint64_t reciprocal = intervals.reciprocal; reciprocal != 0) {
    visit([reciprocal](int64_t row) { return divided(row, reciprocal); });
  } else {
    visit([&intervals](int64_t row) { return interval_of(intervals, row); });
  }
}

constexpr uint64_t bit(size_t stream) { return uint64_t{1} << stream; }

template <class Visit>
void for_each_bit(uint64_t bits, Visit visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<size_t>(std::countr_zero(bits)));
}

// A stream while it is written.
template <class WireId>
struct Stream {
  WireId* ids = nullptr;  // the next one
  float* weights = nullptr;
  uint32_t length = 0;  // of the bag so far
  uint32_t bags = 0;
  int64_t row = 0;  // first one of the range
  uint32_t* dense = nullptr;
  SparseLength* sparse = nullptr;
};

// The first target of each stream is written, the others are copies.
const BlockSections& first_block(const RoutedIds& feature, size_t stream,
                                 const WrittenBlocks& blocks) {
  const auto target = static_cast<size_t>(feature.intervals->first_target[stream]);
  return blocks[feature.targets[target].block];
}

template <class Id>
CheckedIds count_ids(const RoutedIds& feature, const Id* ids, std::span<BlockCount> of_blocks) {
  const RowIntervals& intervals = *feature.intervals;
  std::array<BlockCount, kMostStreams> counts;
  CheckedIds checked;
  with_interval(intervals, [&](const auto interval) {
    const int64_t rows = feature.rows;
    int64_t i = 0;
    for (int64_t sample = 0; sample < feature.bags; ++sample) {
      const uint32_t length = feature.lengths[sample];
      uint32_t kept = length;
      uint64_t present = 0;
      for (const int64_t bag_end = i + length; i < bag_end; ++i) {
        int64_t row = ids[i];
        if (!in_range(row, rows)) {
          if (!admit(feature, feature.first + i, row, checked)) return;
          if (row < 0) {
            --kept;
            continue;
          }
        }
        const size_t stream = interval(row);
        ++counts[stream].ids;
        present |= bit(stream);
      }
      for_each_bit(present, [&](size_t stream) { ++counts[stream].bags; });
      if (feature.kept_lengths != nullptr) feature.kept_lengths[sample] = kept;
    }
  });
  for (size_t s = 0; s < intervals.count(); ++s) {
    for (int32_t n = intervals.first_target[s]; n < intervals.first_target[s + 1]; ++n) {
      of_blocks[feature.targets[static_cast<size_t>(n)].block] = counts[s];
    }
  }
  return checked;
}

// What the first block of a stream holds, to the others.
template <class WireId>
void copy_stream(const RoutedIds& feature, size_t stream, uint32_t bags,
                 const WrittenBlocks& blocks) {
  const RowIntervals& intervals = *feature.intervals;
  const BlockSections& from = first_block(feature, stream, blocks);
  const auto chunks = static_cast<size_t>(feature.chunks());
  const auto ids = static_cast<size_t>(from.chunk_ids[chunks]);
  const auto copy = [](const auto* source, auto* out, size_t elements) {
    if (out != nullptr) std::memcpy(out, source, elements * sizeof(*source));
  };
  for (int32_t n = intervals.first_target[stream] + 1; n < intervals.first_target[stream + 1];
       ++n) {
    const BlockSections& to = blocks[feature.targets[static_cast<size_t>(n)].block];
    if (&to == &from) continue;
    copy(from.dense_lengths, to.dense_lengths, static_cast<size_t>(feature.bags));
    copy(from.sparse_lengths, to.sparse_lengths, bags);
    copy(static_cast<const WireId*>(from.ids), static_cast<WireId*>(to.ids), ids);
    copy(from.weights, to.weights, ids);
    copy(from.chunk_rows, to.chunk_rows, chunks + 1);
    copy(from.chunk_ids, to.chunk_ids, chunks + 1);
  }
}

template <class WireId, class Id>
void write_ids(const RoutedIds& feature, const Id* ids, const WrittenBlocks& blocks) {
  const size_t count = feature.intervals->count();
  std::array<Stream<WireId>, kMostStreams> streams;
  for (size_t s = 0; s < count; ++s) {
    const BlockSections& block = first_block(feature, s, blocks);
    streams[s] = {.ids = static_cast<WireId*>(block.ids),
                  .weights = block.weights,
                  .row = feature.intervals->cuts[s],
                  .dense = block.dense_lengths,
                  .sparse = block.sparse_lengths};
    if (block.dense_lengths != nullptr) {
      std::memset(block.dense_lengths, 0, static_cast<size_t>(feature.bags) * sizeof(uint32_t));
    }
  }
  const auto note_chunk = [&](int64_t chunk) {
    for (size_t s = 0; s < count; ++s) {
      const BlockSections& block = first_block(feature, s, blocks);
      block.chunk_rows[chunk] = streams[s].bags;
      block.chunk_ids[chunk] =
          static_cast<uint32_t>(streams[s].ids - static_cast<WireId*>(block.ids));
    }
  };
  const float* const weights = feature.weights;
  // Whether there are weights is asked here, not with every id.
  const auto write = [&](const auto interval, const auto weighted) {
    const int64_t rows = feature.rows;
    const bool clamps = feature.policy == SHARDREC_OUT_OF_RANGE_CLAMP;
    int64_t i = 0;
    for (int64_t sample = 0; sample < feature.bags; ++sample) {
      if (sample % kChunk == 0) note_chunk(sample / kChunk);
      uint64_t present = 0;
      for (const int64_t bag_end = i + feature.lengths[sample]; i < bag_end; ++i) {
        int64_t row = ids[i];
        if (!in_range(row, rows)) {
          if (!clamps) continue;
          row = 0;
        }
        const size_t s = interval(row);
        Stream<WireId>& stream = streams[s];
        *stream.ids++ = static_cast<WireId>(row - stream.row);
        if constexpr (weighted()) *stream.weights++ = weights[feature.first + i];
        ++stream.length;
        present |= bit(s);
      }
      for_each_bit(present, [&](size_t s) {
        Stream<WireId>& stream = streams[s];
        if (stream.sparse != nullptr) {
          stream.sparse[stream.bags] = {static_cast<uint32_t>(sample), stream.length};
        } else {
          stream.dense[sample] = stream.length;
        }
        ++stream.bags;
        stream.length = 0;
      });
    }
  };
  with_interval(*feature.intervals, [&](const auto interval) {
    weights != nullptr ? write(interval, std::true_type{}) : write(interval, std::false_type{});
  });
  note_chunk(feature.chunks());
  for (size_t s = 0; s < count; ++s) copy_stream<WireId>(feature, s, streams[s].bags, blocks);
}

}  // namespace

CheckedIds count_streams(const RoutedIds& feature, std::span<BlockCount> counts) {
  return with_ids(feature, [&](const auto* ids) { return count_ids(feature, ids, counts); });
}

void write_streams(const RoutedIds& feature, const WrittenBlocks& blocks) {
  with_ids(feature, [&](const auto* ids) {
    feature.writes_64 ? write_ids<int64_t>(feature, ids, blocks)
                      : write_ids<int32_t>(feature, ids, blocks);
  });
}

}  // namespace shardrec::compute::cpu
