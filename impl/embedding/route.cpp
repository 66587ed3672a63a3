#include "embedding/route.h"

#include <algorithm>
#include <cstring>

namespace shardrec::embedding {
namespace {

// The interval of a row that is in range.
inline size_t interval_of(const Routing& routing, int64_t row) {
  if (routing.even != 0) return static_cast<size_t>(row / routing.even);
  const auto above = std::upper_bound(routing.cuts.begin() + 1, routing.cuts.end() - 1, row);
  return static_cast<size_t>(above - routing.cuts.begin()) - 1;
}

template <class T>
T* at(std::byte* base, size_t offset) {
  return static_cast<T*>(static_cast<void*>(base + offset));
}

}  // namespace

RoutedBatch::RoutedBatch(const Layout& layout)
    : layout_(layout),
      feature_ordinal_(layout.model().features.size()),
      verdicts_(layout.model().features.size()),
      messages_(static_cast<size_t>(layout.ranks())),
      message_offsets_(static_cast<size_t>(layout.ranks()) + 1) {
  first_block_.push_back(0);
  for (int owner = 0; owner < layout.ranks(); ++owner) {
    first_block_.push_back(first_block_.back() + layout.blocks_of(owner).size());
  }
  blocks_.resize(first_block_.back());
  filling_.resize(first_block_.back());
  for (size_t t = 0; t < layout.table_count(); ++t) {
    const auto& features = layout.table(static_cast<int32_t>(t)).features;
    for (size_t k = 0; k < features.size(); ++k) {
      feature_ordinal_[static_cast<size_t>(features[k])] = static_cast<int32_t>(k);
    }
  }
}

Verdict RoutedBatch::route(const CheckedBatch& batch, const Verdict& verdict,
                           core::Threads& threads, core::Scratch& buffer) {
  batch_size_ = verdict.good() ? batch.batch_size() : 0;
  ids_sent_ = 0;
  std::fill(verdicts_.begin(), verdicts_.end(), Verdict{});
  std::fill(filling_.begin(), filling_.end(), Filling{});
  Verdict found = verdict;
  if (batch_size_ != 0) {
    const auto features = static_cast<int64_t>(layout_.model().features.size());
    threads.parallel_for(features, 1, [&](int64_t first, int64_t last) {
      for (int64_t f = first; f < last; ++f) {
        const auto feature = static_cast<int32_t>(f);
        verdicts_[static_cast<size_t>(f)] =
            batch.ids_are_64()
                ? count_feature(batch, static_cast<const int64_t*>(batch.values()), feature)
                : count_feature(batch, static_cast<const int32_t*>(batch.values()), feature);
      }
    });
    for (const Verdict& of_feature : verdicts_) {
      if (found.good()) found = of_feature;
    }
    if (!found.good()) batch_size_ = 0;
  }
  lay_out(batch, found, buffer);
  if (batch_size_ != 0) {
    if (batch.ids_are_64()) {
      route_all(batch, static_cast<const int64_t*>(batch.values()), threads);
    } else {
      route_all(batch, static_cast<const int32_t*>(batch.values()), threads);
    }
  }
  finish_blocks();
  return found;
}

template <class Id>
void RoutedBatch::route_all(const CheckedBatch& batch, const Id* values, core::Threads& threads) {
  const auto features = static_cast<int64_t>(layout_.model().features.size());
  threads.parallel_for(features, 1, [&](int64_t first, int64_t last) {
    for (int64_t f = first; f < last; ++f) {
      const auto feature = static_cast<int32_t>(f);
      const int32_t table = layout_.model().features[static_cast<size_t>(f)].table;
      const bool whole = layout_.table(table).routing.intervals() == 1;
      if (layout_.ids_are_64(table)) {
        whole ? write_whole<Id, int64_t>(batch, values, feature)
              : write_feature<Id, int64_t>(batch, values, feature);
      } else {
        whole ? write_whole<Id, int32_t>(batch, values, feature)
              : write_feature<Id, int32_t>(batch, values, feature);
      }
    }
  });
}

// Checks the ids of a feature and counts, for every block it goes to, ids and bags.
template <class Id>
Verdict RoutedBatch::count_feature(const CheckedBatch& batch, const Id* values, int32_t feature) {
  const int32_t table = layout_.model().features[static_cast<size_t>(feature)].table;
  const TableLayout& layout = layout_.table(table);
  const auto rows = static_cast<uint64_t>(layout_.model().tables[static_cast<size_t>(table)].rows);
  const auto k = static_cast<size_t>(feature_ordinal_[static_cast<size_t>(feature)]);
  const int64_t begin = batch.first_id(feature);
  const int64_t end = begin + batch.ids(feature);

  // One unsigned comparison refuses negative ids as well.
  const auto bad_id = [&](int64_t position) -> Verdict {
    return {.defect = Defect::kIdRange,
            .argument = Argument::kValues,
            .feature = feature,
            .position = position,
            .value = values[position],
            .limit = static_cast<int64_t>(rows)};
  };
  const auto out_of_range = [&](Id id) {
    return static_cast<uint64_t>(static_cast<int64_t>(id)) >= rows;
  };

  if (layout.routing.intervals() == 1) {
    bool bad = false;
    for (int64_t i = begin; i < end; ++i) bad |= out_of_range(values[i]);
    if (bad) {
      for (int64_t i = begin; i < end; ++i) {
        if (out_of_range(values[i])) return bad_id(i);
      }
    }
    int64_t bags = 0;
    for (const uint32_t length : batch.lengths(feature)) bags += length != 0;
    for (const int32_t part : layout.parts) {
      Filling& filling = filling_[block_index(part, k)];
      filling.ids = end - begin;
      filling.bags = bags;
    }
    return {};
  }
  const Routing& routing = layout.routing;
  int64_t i = begin;
  int64_t sample = 0;
  for (const uint32_t length : batch.lengths(feature)) {
    for (const int64_t bag_end = i + length; i < bag_end; ++i) {
      if (out_of_range(values[i])) return bad_id(i);
      const size_t interval = interval_of(routing, static_cast<int64_t>(values[i]));
      for (int32_t n = routing.first_target[interval]; n < routing.first_target[interval + 1];
           ++n) {
        const int32_t part =
            layout.parts[static_cast<size_t>(routing.targets[static_cast<size_t>(n)])];
        Filling& filling = filling_[block_index(part, k)];
        ++filling.ids;
        filling.bags += filling.last_sample != sample;
        filling.last_sample = sample;
      }
    }
    ++sample;
  }
  return {};
}

// Decides forms and places, and writes headers and records.
void RoutedBatch::lay_out(const CheckedBatch& batch, const Verdict& verdict,
                          core::Scratch& buffer) {
  const bool has_blocks = batch_size_ != 0;
  const bool weighted = has_blocks && batch.weighted();
  size_t offset = 0;
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    message_offsets_[static_cast<size_t>(owner)] = offset;
    size_t bytes = align_up(sizeof(InputHeader), 8);
    if (has_blocks) {
      const auto blocks = layout_.blocks_of(owner);
      bytes += blocks.size() * sizeof(BlockRecord);
      for (size_t b = 0; b < blocks.size(); ++b) {
        const Filling& filling = filling_[first_block_[static_cast<size_t>(owner)] + b];
        const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
        const BlockRecord record{static_cast<uint64_t>(filling.ids),
                                 static_cast<uint32_t>(filling.bags),
                                 sparse_is_smaller(filling.bags, batch_size_) ? 1U : 0U};
        bytes += lengths_bytes(record, batch_size_) +
                 ids_bytes(record, layout_.ids_are_64(part.table)) +
                 weights_bytes(record, weighted);
      }
    }
    offset += align_up(bytes, 64);
    messages_[static_cast<size_t>(owner)] = {static_cast<const std::byte*>(nullptr), bytes};
  }
  message_offsets_.back() = offset;

  std::byte* base = buffer.resize(offset);
  const auto chunk_entries = static_cast<size_t>(chunks() + 1);
  const auto chunk_bags =
      chunk_memory_.resize_as<uint32_t>(has_blocks ? blocks_.size() * chunk_entries : 0);
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const size_t start = message_offsets_[static_cast<size_t>(owner)];
    comm::ConstBytes& message = messages_[static_cast<size_t>(owner)];
    message = {base + start, message.size()};
    InputHeader header;
    header.batch_size = batch_size_;
    header.weighted = weighted ? 1 : 0;
    header.no_more_data = batch.no_more_data() ? 1 : 0;
    header.has_blocks = has_blocks ? 1 : 0;
    header.verdict = verdict;
    std::memcpy(base + start, &header, sizeof header);
    if (!has_blocks) continue;
    const auto blocks = layout_.blocks_of(owner);
    size_t records = start + align_up(sizeof(InputHeader), 8);
    size_t at_byte = records + blocks.size() * sizeof(BlockRecord);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const size_t index = first_block_[static_cast<size_t>(owner)] + b;
      Filling& filling = filling_[index];
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      const BlockRecord record{static_cast<uint64_t>(filling.ids),
                               static_cast<uint32_t>(filling.bags),
                               sparse_is_smaller(filling.bags, batch_size_) ? 1U : 0U};
      std::memcpy(base + records, &record, sizeof record);
      records += sizeof record;
      SentBlock& block = blocks_[index];
      block = {filling.ids, filling.bags, record.sparse != 0, nullptr, nullptr, nullptr};
      if (block.sparse) {
        filling.sparse = at<SparseLength>(base, at_byte);
        block.sparse_lengths = filling.sparse;
      } else {
        filling.dense = at<uint32_t>(base, at_byte);
        block.dense_lengths = filling.dense;
      }
      at_byte += lengths_bytes(record, batch_size_);
      filling.id_data = base + at_byte;
      at_byte += ids_bytes(record, layout_.ids_are_64(part.table));
      if (weighted) filling.weight_data = at<float>(base, at_byte);
      at_byte += weights_bytes(record, weighted);
      filling.chunk_bags = chunk_bags.data() + index * chunk_entries;
      block.chunk_bags = filling.chunk_bags;
      filling.last_sample = -1;
      filling.ids = 0;
      filling.bags = 0;
    }
  }
}

// A table that is not cut by rows: every block of the feature is the feature.
template <class Id, class WireId>
void RoutedBatch::write_whole(const CheckedBatch& batch, const Id* values, int32_t feature) {
  const int32_t table = layout_.model().features[static_cast<size_t>(feature)].table;
  const TableLayout& layout = layout_.table(table);
  const auto k = static_cast<size_t>(feature_ordinal_[static_cast<size_t>(feature)]);
  const int64_t begin = batch.first_id(feature);
  const int64_t count = batch.ids(feature);
  const auto lengths = batch.lengths(feature);
  for (const int32_t part : layout.parts) {
    const size_t index = block_index(part, k);
    Filling& filling = filling_[index];
    auto* ids = static_cast<WireId*>(filling.id_data);
    for (int64_t i = 0; i < count; ++i) ids[i] = static_cast<WireId>(values[begin + i]);
    if (filling.weight_data != nullptr && count != 0) {
      std::memcpy(filling.weight_data, batch.weights() + begin,
                  static_cast<size_t>(count) * sizeof(float));
    }
    if (filling.dense != nullptr) {
      std::memcpy(filling.dense, lengths.data(), lengths.size_bytes());
    }
    int64_t bags = 0;
    for (int64_t sample = 0; sample < batch_size_; ++sample) {
      if (sample % kChunk == 0) filling.chunk_bags[sample / kChunk] = static_cast<uint32_t>(bags);
      const uint32_t length = lengths[static_cast<size_t>(sample)];
      if (length == 0) continue;
      if (filling.sparse != nullptr) {
        filling.sparse[bags] = {static_cast<uint32_t>(sample), length};
      }
      ++bags;
    }
    filling.chunk_bags[chunks()] = static_cast<uint32_t>(bags);
    filling.ids = count;
    filling.bags = bags;
  }
}

template <class Id, class WireId>
void RoutedBatch::write_feature(const CheckedBatch& batch, const Id* values, int32_t feature) {
  const int32_t table = layout_.model().features[static_cast<size_t>(feature)].table;
  const TableLayout& layout = layout_.table(table);
  const Routing& routing = layout.routing;
  const auto k = static_cast<size_t>(feature_ordinal_[static_cast<size_t>(feature)]);
  for (const int32_t part : layout.parts) {
    Filling& filling = filling_[block_index(part, k)];
    if (filling.dense != nullptr) {
      std::memset(filling.dense, 0, static_cast<size_t>(batch_size_) * sizeof(uint32_t));
    }
  }
  int64_t i = batch.first_id(feature);
  int64_t sample = 0;
  for (const uint32_t length : batch.lengths(feature)) {
    for (const int64_t bag_end = i + length; i < bag_end; ++i) {
      const auto id = static_cast<int64_t>(values[i]);
      const size_t interval = interval_of(routing, id);
      for (int32_t n = routing.first_target[interval]; n < routing.first_target[interval + 1];
           ++n) {
        const int32_t p =
            layout.parts[static_cast<size_t>(routing.targets[static_cast<size_t>(n)])];
        Filling& filling = filling_[block_index(p, k)];
        if (filling.last_sample != sample) {
          for (; filling.next_chunk * kChunk <= sample; ++filling.next_chunk) {
            filling.chunk_bags[filling.next_chunk] = static_cast<uint32_t>(filling.bags);
          }
          if (filling.sparse != nullptr) {
            filling.sparse[filling.bags] = {static_cast<uint32_t>(sample), 0};
          }
          ++filling.bags;
          filling.last_sample = sample;
        }
        if (filling.sparse != nullptr) {
          ++filling.sparse[filling.bags - 1].count;
        } else {
          ++filling.dense[sample];
        }
        const int64_t row = id - layout_.parts()[static_cast<size_t>(p)].row;
        static_cast<WireId*>(filling.id_data)[filling.ids] = static_cast<WireId>(row);
        if (filling.weight_data != nullptr) filling.weight_data[filling.ids] = batch.weights()[i];
        ++filling.ids;
      }
    }
    ++sample;
  }
  for (const int32_t part : layout.parts) {
    Filling& filling = filling_[block_index(part, k)];
    for (; filling.next_chunk <= chunks(); ++filling.next_chunk) {
      filling.chunk_bags[filling.next_chunk] = static_cast<uint32_t>(filling.bags);
    }
  }
}

void RoutedBatch::finish_blocks() {
  if (batch_size_ == 0) std::fill(blocks_.begin(), blocks_.end(), SentBlock{});
  for (const SentBlock& block : blocks_) ids_sent_ += block.ids;
}

}  // namespace shardrec::embedding
