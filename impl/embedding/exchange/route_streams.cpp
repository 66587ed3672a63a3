// Routing of pooled features whose table is cut into ranges of rows, each of which goes to its
// parts as a whole: a stream of ids and bags per range, written once and copied for the parts that
// own other columns of it. What concerns a bag is noted when it ends, not with each of its ids, as
// for any cut (route_feature.cpp).
#include <array>
#include <bit>
#include <cstring>

#include "embedding/exchange/route.h"
#include "embedding/exchange/route_ids.h"

namespace shardrec::embedding {
namespace {

// Calls visit with what tells the range of a row: the usual way is chosen here, not with every id.
template <class Visit>
void with_interval(const Routing& routing, Visit visit) {
  if (const uint64_t reciprocal = routing.reciprocal; reciprocal != 0) {
    visit([reciprocal](int64_t row) { return divided(row, reciprocal); });
  } else {
    visit([&routing](int64_t row) { return interval_of(routing, row); });
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

}  // namespace

template <class Id>
void RoutedBatch::count_streams(const CheckedBatch& batch, const Id* values, int32_t feature) {
  Feature& own = features_[static_cast<size_t>(feature)];
  const Routing& routing = layout_.table(own.table).routing;
  const int64_t rows = layout_.model().tables[static_cast<size_t>(own.table)].rows;
  struct Count {
    int64_t ids = 0;
    int64_t bags = 0;
  };
  std::array<Count, Routing::kMostStreams> counts;
  with_interval(routing, [&](const auto interval) {
    int64_t i = batch.first_id(feature);
    int64_t sample = 0;
    for (const uint32_t length : batch.lengths(feature)) {
      uint32_t kept = length;
      uint64_t present = 0;
      for (const int64_t bag_end = i + length; i < bag_end; ++i) {
        int64_t row = values[i];
        if (!in_range(row, rows)) {
          if (!admit(feature, i, rows, row)) return;
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
      if (own.kept_lengths != nullptr) own.kept_lengths[sample] = kept;
      ++sample;
    }
  });
  for (size_t stream = 0; stream < routing.intervals(); ++stream) {
    for (int32_t n = routing.first_target[stream]; n < routing.first_target[stream + 1]; ++n) {
      BlockWriter& writer = writers_[own.targets[static_cast<size_t>(n)].writer];
      writer.ids = counts[stream].ids;
      writer.bags = counts[stream].bags;
    }
  }
}

template <class Id, class WireId>
void RoutedBatch::write_streams(const CheckedBatch& batch, const Id* values, int32_t feature) {
  const Feature& own = of(feature);
  const Routing& routing = layout_.table(own.table).routing;
  const int64_t rows = layout_.model().tables[static_cast<size_t>(own.table)].rows;
  const size_t count = routing.intervals();
  // The first target of each stream is written, the others are copies.
  const auto writer_of = [&](size_t stream) -> BlockWriter& {
    const auto first = static_cast<size_t>(routing.first_target[stream]);
    return writers_[own.targets[first].writer];
  };
  std::array<Stream<WireId>, Routing::kMostStreams> streams;
  for (size_t s = 0; s < count; ++s) {
    const BlockWriter& writer = writer_of(s);
    streams[s] = {.ids = static_cast<WireId*>(writer.id_data),
                  .weights = writer.weight_data,
                  .row = routing.cuts[s],
                  .dense = writer.dense,
                  .sparse = writer.sparse};
    if (writer.dense != nullptr) {
      std::memset(writer.dense, 0, static_cast<size_t>(own.samples) * sizeof(uint32_t));
    }
  }
  const auto note_chunk = [&](int64_t chunk) {
    for (size_t s = 0; s < count; ++s) {
      const BlockWriter& writer = writer_of(s);
      writer.chunk_rows[chunk] = streams[s].bags;
      writer.chunk_ids[chunk] =
          static_cast<uint32_t>(streams[s].ids - static_cast<WireId*>(writer.id_data));
    }
  };
  const float* weights = batch.weighted() ? batch.weights() : nullptr;
  with_interval(routing, [&](const auto interval) {
    int64_t i = batch.first_id(feature);
    int64_t sample = 0;
    for (const uint32_t length : batch.lengths(feature)) {
      if (sample % kChunk == 0) note_chunk(sample / kChunk);
      uint64_t present = 0;
      for (const int64_t bag_end = i + length; i < bag_end; ++i) {
        const int64_t row = row_for(values[i], rows, own.policy);
        if (row < 0) continue;
        const size_t s = interval(row);
        Stream<WireId>& stream = streams[s];
        *stream.ids++ = static_cast<WireId>(row - stream.row);
        if (weights != nullptr) *stream.weights++ = weights[i];
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
      ++sample;
    }
  });
  note_chunk(chunks(feature));
  for (size_t s = 0; s < count; ++s) {
    const BlockWriter& from = writer_of(s);
    const auto ids = static_cast<size_t>(from.chunk_ids[chunks(feature)]);
    const auto copy = [](const auto* source, auto* out, size_t elements) {
      if (out != nullptr) std::memcpy(out, source, elements * sizeof(*source));
    };
    for (int32_t n = routing.first_target[s] + 1; n < routing.first_target[s + 1]; ++n) {
      const BlockWriter& to = writers_[own.targets[static_cast<size_t>(n)].writer];
      copy(from.dense, to.dense, static_cast<size_t>(own.samples));
      copy(from.sparse, to.sparse, streams[s].bags);
      copy(static_cast<const WireId*>(from.id_data), static_cast<WireId*>(to.id_data), ids);
      copy(from.weight_data, to.weight_data, ids);
      copy(from.chunk_rows, to.chunk_rows, static_cast<size_t>(chunks(feature)) + 1);
      copy(from.chunk_ids, to.chunk_ids, static_cast<size_t>(chunks(feature)) + 1);
    }
  }
}

template void RoutedBatch::count_streams(const CheckedBatch&, const int32_t*, int32_t);
template void RoutedBatch::count_streams(const CheckedBatch&, const int64_t*, int32_t);
template void RoutedBatch::write_streams<int32_t, int32_t>(const CheckedBatch&, const int32_t*,
                                                           int32_t);
template void RoutedBatch::write_streams<int32_t, int64_t>(const CheckedBatch&, const int32_t*,
                                                           int32_t);
template void RoutedBatch::write_streams<int64_t, int32_t>(const CheckedBatch&, const int64_t*,
                                                           int32_t);
template void RoutedBatch::write_streams<int64_t, int64_t>(const CheckedBatch&, const int64_t*,
                                                           int32_t);

}  // namespace shardrec::embedding
