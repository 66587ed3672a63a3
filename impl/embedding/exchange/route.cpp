#include "embedding/exchange/route.h"

#include <algorithm>
#include <cstring>

#include "core/memory.h"

namespace shardrec::embedding {
namespace {

template <class T>
T* at(std::byte* base, size_t offset) {
  return static_cast<T*>(static_cast<void*>(base + offset));
}

// Where the lengths of no bag are.
constexpr SparseLength kNoLengths[1] = {};

bool drops(const compute::RoutedIds& feature) {
  return feature.policy == SHARDREC_OUT_OF_RANGE_DROP;
}

}  // namespace

static_assert(Routing::kMostStreams == compute::kMostStreams);

RoutedBatch::RoutedBatch(const Layout& layout, bool weight_gradient,
                         const std::shared_ptr<compute::Memory>& memory)
    : layout_(layout),
      weight_gradient_(weight_gradient),
      features_(layout.model().features.size()),
      routed_(features_.size()),
      checked_(features_.size()),
      empty_blocks_(features_.size()),
      empty_chunks_(features_.size()),
      messages_(static_cast<size_t>(layout.ranks())),
      bodies_(messages_.size()),
      chunk_memory_(memory),
      feature_memory_(memory) {
  first_block_.push_back(0);
  for (int owner = 0; owner < layout.ranks(); ++owner) {
    first_block_.push_back(first_block_.back() + layout.blocks_of(owner).size());
  }
  const size_t blocks = first_block_.back();
  counts_.resize(blocks);
  sections_.resize(blocks);
  places_.resize(blocks);
  first_record_.resize(first_block_.size());
  deduplicated_.reserve(messages_.size());
  for (size_t t = 0; t < layout.table_count(); ++t) find_targets(static_cast<int32_t>(t));
}

void RoutedBatch::set_deduplicates(bool deduplicates) {
  deduplicates_ = deduplicates;
  plain_blocks_.resize(deduplicates ? places_.size() : 0);
  unique_.assign(plain_blocks_.size(), 0);
}

// All of the features of a table that no batch changes.
void RoutedBatch::find_targets(int32_t table) {
  const TableLayout& layout = layout_.table(table);
  const plan::Table& model = layout_.model().tables[static_cast<size_t>(table)];
  for (size_t k = 0; k < layout.features.size(); ++k) {
    const auto number = static_cast<size_t>(layout.features[k]);
    const auto block_of = [&](int32_t receiver) {
      const int32_t part = layout.receivers[static_cast<size_t>(receiver)];
      const auto owner = static_cast<size_t>(layout_.parts()[static_cast<size_t>(part)].owner);
      return first_block_[owner] + static_cast<size_t>(layout_.block_of(part, k));
    };
    Feature& feature = features_[number];
    feature.table = table;
    for (int32_t r = 0; r < std::ssize(layout.receivers); ++r) {
      feature.blocks.push_back(static_cast<uint32_t>(block_of(r)));
    }
    for (const int32_t receiver : layout.routing.targets) {
      const int32_t part = layout.receivers[static_cast<size_t>(receiver)];
      feature.targets.push_back(
          {block_of(receiver), layout_.parts()[static_cast<size_t>(part)].row});
    }
    const Routing& routing = layout.routing;
    feature.intervals = {.cuts = routing.cuts,
                         .first_target = routing.first_target,
                         .even = routing.even,
                         .reciprocal = routing.reciprocal,
                         .streams = routing.streams};
    const bool sequence = layout_.is_sequence(layout.features[k]);
    feature.keeps_intervals = !layout.whole && (sequence || weight_gradient_);
    routed_[number] = {.rows = model.rows,
                       .policy = model.out_of_range,
                       .sequence = sequence,
                       .writes_64 = layout_.ids_are_64(table),
                       .blocks = feature.blocks,
                       .intervals = layout.whole ? nullptr : &feature.intervals,
                       .targets = feature.targets};
  }
}

Verdict RoutedBatch::route(CheckedBatch& batch, const BatchArguments& arguments,
                           compute::Backend& backend, comm::MessageBuffer& buffer) {
  Verdict found = batch.open(arguments, layout_.model(), backend);
  list_features(batch);
  if (found.good() && !batch.no_more_data()) {
    const compute::BatchLengths lengths = batch.unread_lengths();
    bool counted = false;
    if (batch.bags() != 0) {
      counted = backend.routing().count_batch(lengths, routed_, checked_, counts_);
    } else {
      backend.routing().read_lengths(lengths.features, lengths.checked);
    }
    found = batch.finish(arguments, layout_.model(), backend);
    if (found.good() && counted) found = first_verdict();
  }
  return write(batch, found, backend, buffer);
}

Verdict RoutedBatch::write(const CheckedBatch& batch, const Verdict& verdict,
                           compute::Backend& backend, comm::MessageBuffer& buffer) {
  Verdict found = verdict;
  place_intervals();
  lay_out(batch, found, buffer);
  if (has_blocks_) {
    backend.routing().write_ids(routed_, sections_, checked_);
    found = first_verdict();
    if (!found.good()) lay_out(batch, found, buffer);
  }
  if (!has_blocks_) {
    forget_batch();
    return found;
  }
  for (const SentBlock& block : blocks_) ids_sent_ += block.ids;
  if (deduplicates_) deduplicate(buffer, backend);
  publish(buffer);
  return found;
}

void RoutedBatch::forget_batch() {
  for (compute::RoutedIds& feature : routed_) feature.bags = feature.count = 0;
  std::fill(checked_.begin(), checked_.end(), compute::CheckedIds{});
}

// The first defect of the ids, in the order of the features.
Verdict RoutedBatch::first_verdict() const {
  for (size_t f = 0; f < checked_.size(); ++f) {
    const compute::WrongInteger& wrong = checked_[f].wrong;
    if (wrong.position < 0) continue;
    return {.defect = Defect::kIdRange,
            .argument = Argument::kValues,
            .feature = static_cast<int32_t>(f),
            .position = wrong.position,
            .value = wrong.value,
            .limit = routed_[f].rows};
  }
  return {};
}

// The features of the batch, whose ids may not be counted yet, and room for what is kept of them.
void RoutedBatch::list_features(const CheckedBatch& batch) {
  ids_sent_ = 0;
  std::fill(checked_.begin(), checked_.end(), compute::CheckedIds{});
  size_t words = 0;
  bool keeps_intervals = false;
  for (size_t f = 0; f < features_.size(); ++f) {
    const auto number = static_cast<int32_t>(f);
    compute::RoutedIds& feature = routed_[f];
    feature.ids = {batch.values(), batch.ids_are_64()};
    feature.first = batch.first_id(number);
    feature.count = batch.ids(number);
    feature.weights = batch.weights();
    feature.lengths = batch.lengths(number).data();
    feature.bags = batch.samples(number);
    if (drops(feature)) words += static_cast<size_t>(feature.bags);
    keeps_intervals = keeps_intervals || features_[f].keeps_intervals;
  }
  if (keeps_intervals) words += static_cast<size_t>(batch.given_ids());
  std::byte* memory = feature_memory_.resize(words * sizeof(uint32_t));
  for (compute::RoutedIds& feature : routed_) {
    if (!drops(feature)) continue;
    feature.kept_lengths = at<uint32_t>(memory, 0);
    memory += static_cast<size_t>(feature.bags) * sizeof(uint32_t);
  }
  interval_memory_ = keeps_intervals ? at<int32_t>(memory, 0) : nullptr;
}

// When the ids of each feature are counted.
void RoutedBatch::place_intervals() {
  int32_t* intervals = interval_memory_;
  for (size_t f = 0; f < features_.size(); ++f) {
    if (!features_[f].keeps_intervals) continue;
    routed_[f].interval_of = intervals;
    intervals += routed_[f].count;
  }
}

void RoutedBatch::place_blocks(int64_t batch_size) {
  const auto travels = [&](size_t index, const Block& block) {
    return has_blocks_ && (counts_[index].ids != 0 || of(block.feature).bags != batch_size);
  };
  size_t records = 0;
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    size_t index = first_block_[static_cast<size_t>(owner)];
    for (const Block& block : layout_.blocks_of(owner)) {
      places_[index] = travels(index, block)
                           ? BlockPlace::present(records++)
                           : BlockPlace::empty(static_cast<size_t>(block.feature));
      ++index;
    }
    first_record_[static_cast<size_t>(owner) + 1] = records;
  }
  blocks_.clear();
  core::reserve_with_slack(blocks_, records);
  blocks_.resize(records);
}

void RoutedBatch::lay_out(const CheckedBatch& batch, const Verdict& verdict,
                          comm::MessageBuffer& buffer) {
  has_blocks_ = verdict.good() && batch.bags() != 0;
  weighted_ = has_blocks_ && batch.weighted();
  std::fill(unique_.begin(), unique_.end(), 0);
  place_blocks(batch.batch_size());
  size_t offset = 0;
  size_t chunk_entries = 0;
  const auto entries_of = [&](int32_t feature) {
    return 2 * (static_cast<size_t>(chunks(feature)) + 1);
  };
  for (size_t f = 0; f < features_.size() && has_blocks_; ++f) {
    chunk_entries += entries_of(static_cast<int32_t>(f));
  }
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    size_t index = first_block_[static_cast<size_t>(owner)];
    for (const Block& block : layout_.blocks_of(owner)) {
      if (!places_[index++].is_empty()) chunk_entries += entries_of(block.feature);
    }
    offset += align_up(message_bytes(owner), 64);
  }

  InputHeader header;
  header.batch_size = verdict.good() ? batch.batch_size() : 0;
  header.weighted = weighted_ ? 1 : 0;
  header.no_more_data = batch.no_more_data() ? 1 : 0;
  header.has_blocks = has_blocks_ ? 1 : 0;
  header.looked_up = looked_up_;
  header.weight_gradient = weight_gradient_ ? 1 : 0;
  header.verdict = verdict;
  std::byte* message = buffer.resize(offset);
  uint32_t* chunk_table = chunk_memory_.resize_as<uint32_t>(chunk_entries).data();
  const auto take_chunks = [&](int32_t feature) {
    uint32_t* const taken = chunk_table;
    chunk_table += entries_of(feature);
    return taken;
  };
  const auto set_chunks = [&](auto& block, int32_t feature, uint32_t* at) {
    block.chunk_rows = at;
    block.chunk_ids = at + entries_of(feature) / 2;
  };
  for (size_t f = 0; f < features_.size(); ++f) {
    empty_blocks_[f] = {};
    empty_blocks_[f].sparse_lengths = kNoLengths;
    if (!has_blocks_) continue;
    const auto feature = static_cast<int32_t>(f);
    empty_blocks_[f].samples = routed_[f].bags;
    empty_chunks_[f] = take_chunks(feature);
    set_chunks(empty_blocks_[f], feature, empty_chunks_[f]);
  }
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    bodies_[static_cast<size_t>(owner)] = message;
    const size_t bytes = message_bytes(owner);
    std::byte* head = buffer.host(message);
    messages_[static_cast<size_t>(owner)] = {head, bytes};
    header.records = static_cast<uint32_t>(records_to(owner));
    std::memcpy(head, &header, sizeof header);
    message += align_up(bytes, 64);
    if (!has_blocks_) continue;
    write_records(owner, head);
    find_sections(owner, bodies_[static_cast<size_t>(owner)]);
    const auto blocks = layout_.blocks_of(owner);
    for (size_t b = 0; b < blocks.size(); ++b) {
      const size_t index = first_block_[static_cast<size_t>(owner)] + b;
      const BlockPlace place = places_[index];
      const int32_t feature = blocks[b].feature;
      // Of an empty block, the back end writes what it writes of all empty ones of the feature: zeros.
      uint32_t* const at = place.is_empty() ? empty_chunks_[place.index()] : take_chunks(feature);
      set_chunks(sections_[index], feature, at);
      if (!place.is_empty()) set_chunks(blocks_[place.index()], feature, at);
    }
  }
}

BlockRecord RoutedBatch::record_of(int owner, size_t b) const {
  const size_t index = first_block_[static_cast<size_t>(owner)] + b;
  const compute::BlockCount& count = counts_[index];
  const int64_t samples = of(layout_.blocks_of(owner)[b].feature).bags;
  return {.ids = static_cast<uint64_t>(count.ids),
          .bags = static_cast<uint32_t>(count.bags),
          .samples = static_cast<uint32_t>(samples),
          .sparse = sparse_is_smaller(count.bags, samples) ? 1U : 0U,
          .unique = unique_.empty() ? 0 : static_cast<uint32_t>(unique_[index]),
          .block = static_cast<uint32_t>(b)};
}

size_t RoutedBatch::message_bytes(int owner) const {
  if (!has_blocks_) return input_head_bytes(0);
  const auto blocks = layout_.blocks_of(owner);
  size_t bytes = input_head_bytes(records_to(owner));
  for (size_t b = 0; b < blocks.size(); ++b) {
    const BlockRecord record = record_of(owner, b);
    bytes += lengths_bytes(record) + ids_bytes(record, of(blocks[b].feature).writes_64) +
             weights_bytes(record, weighted(blocks[b]));
  }
  return bytes;
}

void RoutedBatch::write_records(int owner, std::byte* head) const {
  const size_t blocks = layout_.blocks_of(owner).size();
  size_t records = 0;
  for (size_t b = 0; b < blocks; ++b) {
    if (places_[first_block_[static_cast<size_t>(owner)] + b].is_empty()) continue;
    const BlockRecord record = record_of(owner, b);
    std::memcpy(head + input_head_bytes(records++), &record, sizeof record);
  }
}

void RoutedBatch::find_sections(int owner, std::byte* message) {
  const auto blocks = layout_.blocks_of(owner);
  std::byte* next = message + input_head_bytes(records_to(owner));
  for (size_t b = 0; b < blocks.size(); ++b) {
    const BlockRecord record = record_of(owner, b);
    const bool wide = of(blocks[b].feature).writes_64;
    const size_t index = first_block_[static_cast<size_t>(owner)] + b;
    compute::BlockSections& sections = sections_[index];
    sections.dense_lengths = record.sparse != 0 ? nullptr : at<uint32_t>(next, 0);
    sections.sparse_lengths = record.sparse != 0 ? at<SparseLength>(next, 0) : nullptr;
    next += lengths_bytes(record);
    sections.ids = next;
    const std::byte* const codes =
        record.unique != 0 ? next + compute::code_offset(record.unique, wide) : nullptr;
    next += ids_bytes(record, wide);
    sections.weights = weighted(blocks[b]) ? at<float>(next, 0) : nullptr;
    next += weights_bytes(record, weighted(blocks[b]));

    if (places_[index].is_empty()) continue;
    SentBlock& sent = blocks_[places_[index].index()];
    sent.codes = codes;
    sent.ids = static_cast<int64_t>(record.ids);
    sent.bags = record.bags;
    sent.samples = record.samples;
    sent.rows = blocks[b].sequence ? sent.ids : sent.bags;
    sent.unique = record.unique;
    sent.dense_lengths = sections.dense_lengths;
    sent.sparse_lengths = sections.sparse_lengths;
  }
}

// Where the blocks of messages to other ranks repeat ids, each different one travels once; what
// then is shorter moves up in its message.
void RoutedBatch::deduplicate(const comm::MessageBuffer& buffer, compute::Backend& backend) {
  deduplicated_.clear();
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    if (owner == layout_.rank()) continue;
    const auto blocks = layout_.blocks_of(owner);
    const size_t first = first_block_[static_cast<size_t>(owner)];
    for (size_t b = 0; b < blocks.size(); ++b) {
      const BlockRecord record = record_of(owner, b);
      plain_blocks_[first + b] = {.lengths_bytes = lengths_bytes(record),
                                  .ids = static_cast<int64_t>(record.ids),
                                  .is_64 = of(blocks[b].feature).writes_64,
                                  .weights_bytes = weights_bytes(record, weighted(blocks[b]))};
    }
    deduplicated_.push_back(
        {.data = bodies_[static_cast<size_t>(owner)] + input_head_bytes(records_to(owner)),
         .blocks = std::span(plain_blocks_).subspan(first, blocks.size()),
         .unique = std::span(unique_).subspan(first, blocks.size())});
  }
  backend.routing().deduplicate_ids(deduplicated_);
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    if (owner == layout_.rank()) continue;
    std::byte* message = bodies_[static_cast<size_t>(owner)];
    write_records(owner, buffer.host(message));
    find_sections(owner, message);
    messages_[static_cast<size_t>(owner)] = {buffer.host(message), message_bytes(owner)};
  }
}

void RoutedBatch::publish(const comm::MessageBuffer& buffer) const {
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const std::byte* message = bodies_[static_cast<size_t>(owner)];
    buffer.publish(message + input_head_bytes(records_to(owner)),
                   message + messages_[static_cast<size_t>(owner)].size());
  }
}

}  // namespace shardrec::embedding
