// The part of routing that reads ids: one feature at a time, counted first, then written.
#include <algorithm>
#include <cstring>

#include "embedding/exchange/route.h"
#include "embedding/exchange/route_ids.h"

namespace shardrec::embedding {
// The first defect of the ids, in the order of the features. Where there is one, the ids that are
// narrowed are looked at again.
Verdict RoutedBatch::first_verdict(const CheckedBatch& batch) {
  bool good = true;
  for (const Feature& feature : features_) good = good && feature.verdict.good();
  for (const Piece& piece : pieces_) good = good && piece.good;
  for (size_t f = 0; f < features_.size() && !good; ++f) {
    if (!features_[f].verdict.good()) return features_[f].verdict;
    if (!features_[f].writes_in_pieces) continue;
    const auto number = static_cast<int32_t>(f);
    const auto* ids = static_cast<const int64_t*>(batch.values());
    const int64_t rows = layout_.model().tables[static_cast<size_t>(features_[f].table)].rows;
    for (int64_t i = batch.first_id(number); i < batch.first_id(number) + batch.ids(number); ++i) {
      if (!in_range(ids[i], rows)) return bad_id(number, i, ids[i], rows);
    }
  }
  return {};
}

// Writes a piece of the ids of a feature, each block of which holds them all.
void RoutedBatch::narrow(const CheckedBatch& batch, const compute::Kernels& kernels, Piece& piece) {
  const Feature& own = of(piece.feature);
  const TableLayout& layout = layout_.table(own.table);
  const int64_t rows = layout_.model().tables[static_cast<size_t>(own.table)].rows;
  const auto* ids =
      static_cast<const int64_t*>(batch.values()) + batch.first_id(piece.feature) + piece.first;
  const int64_t count = piece.last - piece.first;
  const int32_t* written = nullptr;
  for (const int32_t part : layout.receivers) {
    auto* out = static_cast<int32_t*>(writers_[block_index(part, own.ordinal)].id_data);
    if (written == nullptr) {
      piece.good = kernels.narrow_ids(ids, rows, out + piece.first, count);
      written = out + piece.first;
    } else {
      std::memcpy(out + piece.first, written, static_cast<size_t>(count) * sizeof(int32_t));
    }
  }
}

void RoutedBatch::count(const CheckedBatch& batch, int32_t feature) {
  const auto choose = [&](const auto* values) {
    of(feature).streams ? count_streams(batch, values, feature)
                        : count_feature(batch, values, feature);
  };
  batch.ids_are_64() ? choose(static_cast<const int64_t*>(batch.values()))
                     : choose(static_cast<const int32_t*>(batch.values()));
}

void RoutedBatch::write(const CheckedBatch& batch, int32_t feature) {
  const auto choose = [&](const auto* values) {
    using Id = std::remove_cvref_t<decltype(*values)>;
    const auto write_as = [&]<class WireId>(WireId) {
      if (of(feature).whole) return write_whole<Id, WireId>(batch, values, feature);
      if (of(feature).streams) return write_streams<Id, WireId>(batch, values, feature);
      write_cut<Id, WireId>(batch, values, feature);
    };
    layout_.ids_are_64(of(feature).table) ? write_as(int64_t{}) : write_as(int32_t{});
  };
  batch.ids_are_64() ? choose(static_cast<const int64_t*>(batch.values()))
                     : choose(static_cast<const int32_t*>(batch.values()));
}

// An id outside the table: the row that stands for it, negative for none. False: it is refused.
bool RoutedBatch::admit(int32_t feature, int64_t position, int64_t rows, int64_t& row) {
  Feature& own = features_[static_cast<size_t>(feature)];
  if (own.policy == SHARDREC_OUT_OF_RANGE_ERROR) {
    own.verdict = bad_id(feature, position, row, rows);
    return false;
  }
  ++own.out_of_range;
  row = row_for(row, rows, own.policy);
  return true;
}

// Checks the ids of a feature and counts, for every block it goes to, ids and bags.
template <class Id>
void RoutedBatch::count_feature(const CheckedBatch& batch, const Id* values, int32_t feature) {
  Feature& own = features_[static_cast<size_t>(feature)];
  const TableLayout& layout = layout_.table(own.table);
  const int64_t rows = layout_.model().tables[static_cast<size_t>(own.table)].rows;
  const int64_t begin = batch.first_id(feature);
  const int64_t end = begin + own.ids;

  if (own.whole) {
    int64_t bad = 0;
    for (int64_t i = begin; i < end && !own.writes_in_pieces; ++i)
      bad += in_range(values[i], rows) ? 0 : 1;
    if (bad != 0 && own.policy == SHARDREC_OUT_OF_RANGE_ERROR) {
      int64_t i = begin;
      while (in_range(values[i], rows)) ++i;
      own.verdict = bad_id(feature, i, values[i], rows);
      return;
    }
    own.out_of_range = bad;
    int64_t bags = 0;
    for (const uint32_t length : batch.lengths(feature)) bags += length != 0;
    for (const int32_t part : layout.receivers) {
      BlockWriter& writer = writers_[block_index(part, own.ordinal)];
      writer.ids = own.ids;
      writer.bags = bags;
    }
    return;
  }
  const Routing& routing = layout.routing;
  int64_t i = begin;
  int64_t sample = 0;
  for (const uint32_t length : batch.lengths(feature)) {
    uint32_t kept = length;
    for (const int64_t bag_end = i + length; i < bag_end; ++i) {
      int64_t row = values[i];
      if (!in_range(row, rows)) {
        if (!admit(feature, i, rows, row)) return;
        if (row < 0) {
          --kept;
          continue;
        }
      }
      const size_t interval = interval_of(routing, row);
      for (int32_t n = routing.first_target[interval]; n < routing.first_target[interval + 1];
           ++n) {
        BlockWriter& writer = writers_[own.targets[static_cast<size_t>(n)].writer];
        ++writer.ids;
        writer.bags += writer.last_sample != sample;
        writer.last_sample = sample;
      }
    }
    if (own.kept_lengths != nullptr) own.kept_lengths[sample] = kept;
    ++sample;
  }
}

// Every block of the feature is the feature.
template <class Id, class WireId>
void RoutedBatch::write_whole(const CheckedBatch& batch, const Id* values, int32_t feature) {
  const Feature& own = of(feature);
  const TableLayout& layout = layout_.table(own.table);
  const int64_t rows = layout_.model().tables[static_cast<size_t>(own.table)].rows;
  const int64_t begin = batch.first_id(feature);
  const int64_t count = own.ids;
  const auto lengths = batch.lengths(feature);
  for (const int32_t part : layout.receivers) {
    BlockWriter& writer = writers_[block_index(part, own.ordinal)];
    auto* ids = static_cast<WireId*>(writer.id_data);
    if (own.writes_in_pieces) {
      // narrow() does
    } else if (own.out_of_range == 0) {
      for (int64_t i = 0; i < count; ++i) ids[i] = static_cast<WireId>(values[begin + i]);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        ids[i] = static_cast<WireId>(row_for(values[begin + i], rows, own.policy));
      }
    }
    if (writer.weight_data != nullptr && count != 0) {
      std::memcpy(writer.weight_data, batch.weights() + begin,
                  static_cast<size_t>(count) * sizeof(float));
    }
    if (writer.dense != nullptr) {
      std::memcpy(writer.dense, lengths.data(), lengths.size_bytes());
    }
    int64_t bags = 0;
    int64_t ids_before = 0;
    for (int64_t sample = 0; sample < own.samples; ++sample) {
      if (!own.sequence && sample % kChunk == 0) {
        writer.chunk_rows[sample / kChunk] = static_cast<uint32_t>(bags);
        writer.chunk_ids[sample / kChunk] = static_cast<uint32_t>(ids_before);
      }
      const uint32_t length = lengths[static_cast<size_t>(sample)];
      if (length == 0) continue;
      ids_before += length;
      if (writer.sparse != nullptr) {
        writer.sparse[bags] = {static_cast<uint32_t>(sample), length};
      }
      ++bags;
    }
    if (own.sequence) {
      for (int64_t c = 0; c < chunks(feature); ++c) {
        writer.chunk_rows[c] = static_cast<uint32_t>(c * kChunk);
        writer.chunk_ids[c] = writer.chunk_rows[c];
      }
    }
    writer.chunk_ids[chunks(feature)] = static_cast<uint32_t>(count);
    writer.chunk_rows[chunks(feature)] = static_cast<uint32_t>(own.sequence ? count : bags);
  }
}

template <class Id, class WireId>
void RoutedBatch::write_cut(const CheckedBatch& batch, const Id* values, int32_t feature) {
  const Feature& own = of(feature);
  const TableLayout& layout = layout_.table(own.table);
  const Routing& routing = layout.routing;
  const int64_t rows = layout_.model().tables[static_cast<size_t>(own.table)].rows;
  for (const int32_t part : layout.receivers) {
    BlockWriter& writer = writers_[block_index(part, own.ordinal)];
    if (writer.dense != nullptr) {
      std::memset(writer.dense, 0, static_cast<size_t>(own.samples) * sizeof(uint32_t));
    }
  }
  // Rows and ids before each chunk up to that of an item are known when its first row is written.
  const auto reach = [](BlockWriter& writer, int64_t item, int64_t rows_before) {
    for (; writer.next_chunk * kChunk <= item; ++writer.next_chunk) {
      writer.chunk_rows[writer.next_chunk] = static_cast<uint32_t>(rows_before);
      writer.chunk_ids[writer.next_chunk] = static_cast<uint32_t>(writer.ids);
    }
  };
  const int64_t first_id = batch.first_id(feature);
  int64_t i = first_id;
  int64_t sample = 0;
  for (const uint32_t length : batch.lengths(feature)) {
    for (const int64_t bag_end = i + length; i < bag_end; ++i) {
      const int64_t row = row_for(values[i], rows, own.policy);
      if (row < 0) {
        if (own.intervals != nullptr) own.intervals[i - first_id] = kDropped;
        continue;
      }
      const size_t interval = interval_of(routing, row);
      if (own.intervals != nullptr) own.intervals[i - first_id] = static_cast<int32_t>(interval);
      for (int32_t n = routing.first_target[interval]; n < routing.first_target[interval + 1];
           ++n) {
        const Target& target = own.targets[static_cast<size_t>(n)];
        BlockWriter& writer = writers_[target.writer];
        if (own.sequence) reach(writer, i - first_id, writer.ids);
        if (writer.last_sample != sample) {
          if (!own.sequence) reach(writer, sample, writer.bags);
          if (writer.sparse != nullptr) {
            writer.sparse[writer.bags] = {static_cast<uint32_t>(sample), 0};
          }
          ++writer.bags;
          writer.last_sample = sample;
        }
        if (writer.sparse != nullptr) {
          ++writer.sparse[writer.bags - 1].count;
        } else {
          ++writer.dense[sample];
        }
        static_cast<WireId*>(writer.id_data)[writer.ids] = static_cast<WireId>(row - target.row);
        if (writer.weight_data != nullptr) writer.weight_data[writer.ids] = batch.weights()[i];
        ++writer.ids;
      }
    }
    ++sample;
  }
  for (const int32_t part : layout.receivers) {
    BlockWriter& writer = writers_[block_index(part, own.ordinal)];
    reach(writer, chunks(feature) * kChunk, own.sequence ? writer.ids : writer.bags);
  }
}

}  // namespace shardrec::embedding
