#include "embedding/exchange/route.h"

#include <algorithm>
#include <cstring>

namespace shardrec::embedding {
namespace {

// Ids of one piece.
constexpr int64_t kPieceIds = int64_t{1} << 15;

template <class T>
T* at(std::byte* base, size_t offset) {
  return static_cast<T*>(static_cast<void*>(base + offset));
}

}  // namespace

RoutedBatch::RoutedBatch(const Layout& layout, bool weight_gradient,
                         const std::shared_ptr<compute::Memory>& memory)
    : layout_(layout),
      weight_gradient_(weight_gradient),
      features_(layout.model().features.size()),
      messages_(static_cast<size_t>(layout.ranks())),
      message_offsets_(static_cast<size_t>(layout.ranks()) + 1),
      chunk_memory_(memory),
      feature_memory_(memory),
      dictionary_memory_(memory) {
  first_block_.push_back(0);
  for (int owner = 0; owner < layout.ranks(); ++owner) {
    first_block_.push_back(first_block_.back() + layout.blocks_of(owner).size());
  }
  blocks_.resize(first_block_.back());
  writers_.resize(first_block_.back());
  for (size_t t = 0; t < layout.table_count(); ++t) {
    const TableLayout& table = layout.table(static_cast<int32_t>(t));
    const shardrec_out_of_range policy = layout.model().tables[t].out_of_range;
    for (size_t k = 0; k < table.features.size(); ++k) {
      Feature& feature = features_[static_cast<size_t>(table.features[k])];
      feature.table = static_cast<int32_t>(t);
      feature.ordinal = k;
      feature.policy = policy;
      feature.sequence = layout.is_sequence(table.features[k]);
      feature.whole = table.whole;
      feature.keeps_intervals = !feature.whole && (feature.sequence || weight_gradient);
      feature.streams = !feature.whole && !feature.keeps_intervals && table.routing.streams;
      if (feature.whole) continue;
      for (const int32_t receiver : table.routing.targets) {
        const int32_t part = table.receivers[static_cast<size_t>(receiver)];
        feature.targets.push_back(
            {block_index(part, k), layout.parts()[static_cast<size_t>(part)].row});
      }
    }
  }
}

Verdict RoutedBatch::route(const CheckedBatch& batch, const Verdict& verdict,
                           const StepContext& context, compute::Buffer& buffer) {
  const auto features = static_cast<int64_t>(features_.size());
  ids_sent_ = 0;
  pieces_.clear();
  std::fill(writers_.begin(), writers_.end(), BlockWriter{});
  make_room(batch);
  Verdict found = verdict;
  if (found.good() && batch.bags() != 0) {
    context.threads.parallel_for(features, 1, [&](int64_t first, int64_t last) {
      for (int64_t f = first; f < last; ++f) count(batch, static_cast<int32_t>(f));
    });
    found = first_verdict(batch);
  }
  lay_out(batch, found, buffer);
  if (found.good() && batch.bags() != 0) {
    cut_pieces();
    context.threads.parallel_for(std::ssize(pieces_), 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        Piece& piece = pieces_[static_cast<size_t>(p)];
        piece.last == 0 ? write(batch, piece.feature) : narrow(batch, context.kernels, piece);
      }
    });
    found = first_verdict(batch);
    if (!found.good()) lay_out(batch, found, buffer);
  }
  if (!found.good() || batch.bags() == 0) {
    std::fill(blocks_.begin(), blocks_.end(), SentBlock{});
    for (Feature& feature : features_) feature.samples = feature.ids = feature.out_of_range = 0;
    return found;
  }
  for (const SentBlock& block : blocks_) ids_sent_ += block.ids;
  if (deduplicates_) deduplicate(buffer.data(), batch.weighted(), context.threads);
  return found;
}

void RoutedBatch::cut_pieces() {
  size_t most = 0;
  for (const Feature& feature : features_) {
    most += 2 + static_cast<size_t>(feature.ids / kPieceIds);
  }
  core::reserve_with_slack(pieces_, most);
  for (size_t f = 0; f < features_.size(); ++f) {
    pieces_.push_back({.feature = static_cast<int32_t>(f)});
    if (!features_[f].writes_in_pieces) continue;
    for (int64_t first = 0; first < features_[f].ids; first += kPieceIds) {
      pieces_.push_back({.feature = static_cast<int32_t>(f),
                         .first = first,
                         .last = std::min(first + kPieceIds, features_[f].ids)});
    }
  }
}

// Sizes of the features, and memory for what is remembered of them.
void RoutedBatch::make_room(const CheckedBatch& batch) {
  const auto drops = [](const Feature& f) { return f.policy == SHARDREC_OUT_OF_RANGE_DROP; };
  size_t words = 0;
  for (size_t f = 0; f < features_.size(); ++f) {
    const auto number = static_cast<int32_t>(f);
    Feature& feature = features_[f];
    feature.samples = batch.samples(number);
    feature.ids = batch.ids(number);
    feature.out_of_range = 0;
    feature.verdict = {};
    feature.writes_in_pieces = feature.whole && batch.ids_are_64() &&
                               !layout_.ids_are_64(feature.table) &&
                               feature.policy == SHARDREC_OUT_OF_RANGE_ERROR;
    if (drops(feature)) words += static_cast<size_t>(feature.samples);
    if (feature.keeps_intervals) words += static_cast<size_t>(feature.ids);
  }
  std::byte* memory = feature_memory_.resize(words * sizeof(uint32_t));
  for (size_t f = 0; f < features_.size(); ++f) {
    Feature& feature = features_[f];
    feature.lengths = batch.lengths(static_cast<int32_t>(f)).data();
    feature.intervals = nullptr;
    if (drops(feature)) {
      feature.kept_lengths = at<uint32_t>(memory, 0);
      feature.lengths = feature.kept_lengths;
      memory += static_cast<size_t>(feature.samples) * sizeof(uint32_t);
    }
    if (feature.keeps_intervals) {
      feature.intervals = at<int32_t>(memory, 0);
      memory += static_cast<size_t>(feature.ids) * sizeof(int32_t);
    }
  }
}

BlockRecord RoutedBatch::record_of(const Block& block, const BlockWriter& writer) const {
  const int64_t samples = of(block.feature).samples;
  return {.ids = static_cast<uint64_t>(writer.ids),
          .bags = static_cast<uint32_t>(writer.bags),
          .samples = static_cast<uint32_t>(samples),
          .sparse = sparse_is_smaller(writer.bags, samples) ? 1U : 0U};
}

// Decides forms and places, and writes headers and records.
void RoutedBatch::lay_out(const CheckedBatch& batch, const Verdict& verdict,
                          compute::Buffer& buffer) {
  const bool has_blocks = verdict.good() && batch.bags() != 0;
  const bool weighted = has_blocks && batch.weighted();
  size_t offset = 0;
  size_t chunk_entries = 0;
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    message_offsets_[static_cast<size_t>(owner)] = offset;
    size_t bytes = align_up(sizeof(InputHeader), 8);
    if (has_blocks) {
      const auto blocks = layout_.blocks_of(owner);
      bytes += blocks.size() * sizeof(BlockRecord);
      for (size_t b = 0; b < blocks.size(); ++b) {
        const BlockWriter& writer = writers_[first_block_[static_cast<size_t>(owner)] + b];
        const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
        const BlockRecord record = record_of(blocks[b], writer);
        bytes += lengths_bytes(record) + ids_bytes(record, layout_.ids_are_64(part.table)) +
                 weights_bytes(record, weighted && !blocks[b].sequence);
        chunk_entries += 2 * (static_cast<size_t>(chunks(blocks[b].feature)) + 1);
      }
    }
    offset += align_up(bytes, 64);
    messages_[static_cast<size_t>(owner)] = {static_cast<const std::byte*>(nullptr), bytes};
  }
  message_offsets_.back() = offset;

  std::byte* base = buffer.resize(offset);
  uint32_t* chunk_rows = chunk_memory_.resize_as<uint32_t>(chunk_entries).data();
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const size_t start = message_offsets_[static_cast<size_t>(owner)];
    comm::ConstBytes& message = messages_[static_cast<size_t>(owner)];
    message = {base + start, message.size()};
    InputHeader header;
    header.batch_size = verdict.good() ? batch.batch_size() : 0;
    header.weighted = weighted ? 1 : 0;
    header.no_more_data = batch.no_more_data() ? 1 : 0;
    header.has_blocks = has_blocks ? 1 : 0;
    header.looked_up = looked_up_;
    header.weight_gradient = weight_gradient_ ? 1 : 0;
    header.verdict = verdict;
    std::memcpy(base + start, &header, sizeof header);
    if (!has_blocks) continue;
    const auto blocks = layout_.blocks_of(owner);
    size_t records = start + align_up(sizeof(InputHeader), 8);
    size_t at_byte = records + blocks.size() * sizeof(BlockRecord);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const size_t index = first_block_[static_cast<size_t>(owner)] + b;
      BlockWriter& writer = writers_[index];
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      const bool block_weighted = weighted && !blocks[b].sequence;
      const BlockRecord record = record_of(blocks[b], writer);
      std::memcpy(base + records, &record, sizeof record);
      records += sizeof record;
      SentBlock& block = blocks_[index];
      block = {};
      block.ids = writer.ids;
      block.bags = writer.bags;
      block.samples = record.samples;
      block.rows = blocks[b].sequence ? writer.ids : writer.bags;
      if (record.sparse != 0) {
        writer.sparse = at<SparseLength>(base, at_byte);
        block.sparse_lengths = writer.sparse;
      } else {
        writer.dense = at<uint32_t>(base, at_byte);
        block.dense_lengths = writer.dense;
      }
      at_byte += lengths_bytes(record);
      writer.id_data = base + at_byte;
      at_byte += ids_bytes(record, layout_.ids_are_64(part.table));
      if (block_weighted) writer.weight_data = at<float>(base, at_byte);
      at_byte += weights_bytes(record, block_weighted);
      writer.chunk_rows = chunk_rows;
      block.chunk_rows = chunk_rows;
      chunk_rows += chunks(blocks[b].feature) + 1;
      writer.chunk_ids = chunk_rows;
      block.chunk_ids = chunk_rows;
      chunk_rows += chunks(blocks[b].feature) + 1;
      writer.last_sample = -1;
      writer.ids = 0;
      writer.bags = 0;
    }
  }
}

}  // namespace shardrec::embedding
