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

void set_counts(SentBlock& sent, const Block& block, const BlockRecord& record) {
  sent.ids = static_cast<int64_t>(record.ids);
  sent.bags = record.bags;
  sent.samples = record.samples;
  sent.rows = block.sequence ? sent.ids : sent.bags;
  sent.unique = record.unique;
}

bool drops(const compute::RoutedIds& feature) {
  return feature.policy == SHARDREC_OUT_OF_RANGE_DROP;
}

}  // namespace

static_assert(Routing::kMostStreams == compute::kMostStreams);

RoutedBatch::RoutedBatch(const Layout& layout, bool weight_gradient, StepScratch& scratch,
                         const std::shared_ptr<compute::Memory>& memory)
    : layout_(layout),
      scratch_(scratch),
      weight_gradient_(weight_gradient),
      features_(layout.model().features.size()),
      routed_(features_.size()),
      checked_(features_.size()),
      messages_(static_cast<size_t>(layout.ranks())),
      bodies_(messages_.size()),
      chunk_memory_(memory),
      feature_memory_(memory),
      local_memory_(memory) {
  places_.resize(layout.block_count());
  first_sent_.resize(messages_.size() + 1);
  deduplicated_.reserve(messages_.size());
  for (size_t t = 0; t < layout.table_count(); ++t) find_targets(static_cast<int32_t>(t));
}

void RoutedBatch::set_deduplicates(bool deduplicates) { deduplicates_ = deduplicates; }

// All of the features of a table that no batch changes.
void RoutedBatch::find_targets(int32_t table) {
  const TableLayout& layout = layout_.table(table);
  const plan::Table& model = layout_.model().tables[static_cast<size_t>(table)];
  for (size_t k = 0; k < layout.features.size(); ++k) {
    const auto number = static_cast<size_t>(layout.features[k]);
    Feature& feature = features_[number];
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
                       .blocks = layout_.route(layout.features[k]).blocks,
                       .intervals = layout.whole ? nullptr : &feature.intervals,
                       .targets = layout_.route(layout.features[k]).targets};
  }
}

Verdict RoutedBatch::route(CheckedBatch& batch, const BatchArguments& arguments,
                           compute::Backend& backend, comm::MessageBuffer& buffer) {
  Verdict found = batch.open(arguments, layout_.model(), backend);
  list_features(batch);
  is_pending_ = false;
  is_local_ = local_batch_ != nullptr && found.good() && !batch.no_more_data() &&
              !batch.variable() && batch.bags() != 0 && !batch.may_refuse_weights();
  if (is_local_) {
    copy_local(batch, buffer);
    is_pending_ = true;
    return found;
  }
  if (found.good() && !batch.no_more_data()) {
    scratch_.counts.resize(places_.size());
    const bool counted = batch.count(routed_, checked_, scratch_.counts, backend);
    found = batch.finish(arguments, layout_.model(), backend);
    if (found.good() && counted) found = first_verdict();
  }
  return write(batch, found, backend, buffer);
}

void RoutedBatch::set_stays(compute::Backend& backend) {
  const auto stays = [&](const compute::RoutedIds& feature) {
    return feature.intervals == nullptr && !feature.sequence && !drops(feature) &&
           feature.writes_64 == routed_.front().writes_64;
  };
  if (layout_.ranks() != 1 || !std::all_of(routed_.begin(), routed_.end(), stays)) return;
  local_batch_ = backend.routing().make_local_batch();
}

void RoutedBatch::copy_local(CheckedBatch& batch, comm::MessageBuffer& buffer) {
  // All that settle() will need: memory that runs out does so in begin, which may be tried again.
  scratch_.counts.resize(places_.size());
  buffer.resize(align_up(input_head_bytes(places_.size()), 64));
  const auto entries_of = [&](size_t f) {
    return static_cast<size_t>(chunks(static_cast<int32_t>(f))) + 1;
  };
  size_t entries = 0;
  for (size_t f = 0; f < features_.size(); ++f) entries += 3 * entries_of(f);
  const auto ids = static_cast<size_t>(batch.given_ids());
  const size_t chunk_bytes = align_up(entries * sizeof(uint32_t), 64);
  const size_t id_bytes =
      align_up(ids * (routed_.front().writes_64 ? sizeof(int64_t) : sizeof(int32_t)), 64);
  const size_t weight_bytes = batch.weighted() ? ids * sizeof(float) : 0;
  std::byte* const memory = local_memory_.resize(chunk_bytes + id_bytes + weight_bytes);
  local_chunks_.clear();
  uint32_t* next = at<uint32_t>(memory, 0);
  for (size_t f = 0; f < features_.size(); ++f) {
    const size_t count = entries_of(f);
    local_chunks_.push_back({.rows = next, .ids = next + count, .batch_ids = next + 2 * count});
    next += 3 * count;
  }
  local_ = {.ids = memory + chunk_bytes,
            .weights = batch.weighted() ? at<float>(memory, chunk_bytes + id_bytes) : nullptr,
            .chunks = local_chunks_};
  local_batch_->begin(batch.unread_lengths(), routed_, places_.size(), local_);
}

Verdict RoutedBatch::settle(CheckedBatch& batch, compute::Backend& backend,
                            comm::MessageBuffer& buffer) {
  scratch_.counts.resize(places_.size());  // other batches have been here
  const bool counted =
      local_batch_->finish(batch.unread_lengths(), routed_, checked_, scratch_.counts);
  Verdict found = batch.finish_lengths();
  if (found.good() && counted) found = first_verdict();
  found = write(batch, found, backend, buffer);
  is_pending_ = false;
  return found;
}

Verdict RoutedBatch::write(const CheckedBatch& batch, const Verdict& verdict,
                           compute::Backend& backend, comm::MessageBuffer& buffer) {
  Verdict found = verdict;
  place_intervals();
  lay_out(batch, found, buffer);
  if (has_blocks_ && !is_local_) {
    backend.routing().write_ids(routed_, compute::WrittenBlocks(places_, scratch_.sections),
                                checked_);
    found = first_verdict();
    if (!found.good()) lay_out(batch, found, buffer);
  }
  if (!has_blocks_) {
    forget_batch();
    return found;
  }
  for (const SentBlock& block : blocks_) ids_sent_ += block.ids;
  if (deduplicates_ && layout_.ranks() > 1) {
    deduplicate(buffer, backend.routing(), batch.staging());
  }
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
    if (!has_blocks_ || scratch_.counts[index].ids != 0) return has_blocks_;
    return of(block.feature).bags != batch_size &&
           layout_.takes_from(layout_.parts()[static_cast<size_t>(block.part)], layout_.rank());
  };
  size_t sent = features_.size();
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    first_sent_[static_cast<size_t>(owner)] = sent;
    size_t index = layout_.first_block_of(owner);
    for (const Block& block : layout_.blocks_of(owner)) {
      const bool alone = travels(index, block);
      places_[index++] = static_cast<uint32_t>(alone ? sent++ : static_cast<size_t>(block.feature));
    }
  }
  first_sent_.back() = sent;
  const auto make_room = [&](auto& by_sent) {
    by_sent.clear();
    core::reserve_with_slack(by_sent, sent);
    by_sent.resize(sent);
  };
  make_room(blocks_);
  make_room(scratch_.sections);
  scratch_.unique.clear();
  if (deduplicates_) {
    make_room(scratch_.plain_blocks);
    make_room(scratch_.unique);
  }
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto places = std::span(places_).subspan(layout_.first_block_of(owner));
    uint32_t number = 0;
    for (SentBlock& block : sent_to(owner)) {
      while (places[number] < features_.size()) ++number;
      block.number = number++;
    }
  }
}

void RoutedBatch::lay_out(const CheckedBatch& batch, const Verdict& verdict,
                          comm::MessageBuffer& buffer) {
  has_blocks_ = verdict.good() && batch.bags() != 0;
  weighted_ = has_blocks_ && batch.weighted();
  place_blocks(batch.batch_size());
  size_t offset = 0;
  size_t chunk_entries = 0;
  local_blocks_.clear();
  const auto entries_of = [&](int32_t feature) {
    return 2 * (static_cast<size_t>(chunks(feature)) + 1);
  };
  for (size_t f = 0; f < features_.size() && has_blocks_; ++f) {
    chunk_entries += entries_of(static_cast<int32_t>(f));
  }
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    for (const SentBlock& sent : sent_to(owner)) {
      chunk_entries += entries_of(block_of(owner, sent).feature);
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
  body_bytes_ = offset;
  uint32_t* chunk_table = nullptr;
  if (!is_local_) chunk_table = chunk_memory_.resize_as<uint32_t>(chunk_entries).data();
  const auto take_chunks = [&](int32_t feature) {
    if (is_local_) return local_chunks_[static_cast<size_t>(feature)].rows;
    uint32_t* const taken = chunk_table;
    chunk_table += entries_of(feature);
    return taken;
  };
  const auto set_chunks = [&](auto& block, int32_t feature, uint32_t* at) {
    block.chunk_rows = at;
    block.chunk_ids = at + entries_of(feature) / 2;
  };
  // Of blocks that do not travel, the back end writes the same: chunks of zeros.
  for (size_t f = 0; f < features_.size(); ++f) {
    blocks_[f].sparse_lengths = no_lengths_;
    if (!has_blocks_) continue;
    const auto feature = static_cast<int32_t>(f);
    uint32_t* const at = take_chunks(feature);
    blocks_[f].samples = routed_[f].bags;
    set_chunks(blocks_[f], feature, at);
    scratch_.sections[f].sparse_lengths = no_lengths_;
    scratch_.sections[f].ids = no_lengths_;
    set_chunks(scratch_.sections[f], feature, at);
  }
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    bodies_[static_cast<size_t>(owner)] = message;
    const size_t bytes = message_bytes(owner);
    std::byte* head = buffer.host(message);
    messages_[static_cast<size_t>(owner)] = {head, bytes};
    header.records = static_cast<uint32_t>(sent_to(owner).size());
    std::memcpy(head, &header, sizeof header);
    message += align_up(bytes, 64);
    write_records(owner, head);
    if (is_local_) {
      find_local_blocks();
    } else {
      find_sections(owner, bodies_[static_cast<size_t>(owner)]);
    }
    for (SentBlock& sent : sent_to(owner)) {
      const int32_t feature = block_of(owner, sent).feature;
      uint32_t* const at = take_chunks(feature);
      set_chunks(scratch_.sections[index_of(sent)], feature, at);
      set_chunks(sent, feature, at);
    }
  }
}

BlockRecord RoutedBatch::record_of(int owner, const SentBlock& sent) const {
  const compute::BlockCount& count = scratch_.counts[layout_.first_block_of(owner) + sent.number];
  const int64_t samples = of(block_of(owner, sent).feature).bags;
  return {.ids = count.ids,
          .bags = count.bags,
          .samples = static_cast<uint32_t>(samples),
          .sparse = !is_local_ && sparse_is_smaller(count.bags, samples) ? 1U : 0U,
          .unique =
              scratch_.unique.empty() ? 0 : static_cast<uint32_t>(scratch_.unique[index_of(sent)]),
          .block = sent.number};
}

size_t RoutedBatch::message_bytes(int owner) const {
  size_t bytes = input_head_bytes(sent_to(owner).size());
  if (is_local_) return bytes;
  for (const SentBlock& sent : sent_to(owner)) {
    const Block& block = block_of(owner, sent);
    const BlockRecord record = record_of(owner, sent);
    bytes += lengths_bytes(record) + ids_bytes(record, of(block.feature).writes_64) +
             weights_bytes(record, weighted(block));
  }
  return bytes;
}

void RoutedBatch::write_records(int owner, std::byte* head) const {
  size_t records = 0;
  for (const SentBlock& sent : sent_to(owner)) {
    const BlockRecord record = record_of(owner, sent);
    std::memcpy(head + input_head_bytes(records++), &record, sizeof record);
  }
}

void RoutedBatch::find_sections(int owner, std::byte* message) {
  std::byte* next = message + input_head_bytes(sent_to(owner).size());
  for (SentBlock& sent : sent_to(owner)) {
    const Block& block = block_of(owner, sent);
    const BlockRecord record = record_of(owner, sent);
    const bool wide = of(block.feature).writes_64;
    compute::BlockSections& sections = scratch_.sections[index_of(sent)];
    sections.dense_lengths = record.sparse != 0 ? nullptr : at<uint32_t>(next, 0);
    sections.sparse_lengths = record.sparse != 0 ? at<SparseLength>(next, 0) : nullptr;
    next += lengths_bytes(record);
    sections.ids = next;
    sent.codes = record.unique != 0 ? next + compute::code_offset(record.unique, wide) : nullptr;
    next += ids_bytes(record, wide);
    sections.weights = weighted(block) ? at<float>(next, 0) : nullptr;
    next += weights_bytes(record, weighted(block));

    set_counts(sent, block, record);
    sent.dense_lengths = sections.dense_lengths;
    sent.sparse_lengths = sections.sparse_lengths;
  }
}

void RoutedBatch::find_local_blocks() {
  const int owner = layout_.rank();
  for (SentBlock& sent : sent_to(owner)) {
    const Block& block = block_of(owner, sent);
    const compute::RoutedIds& feature = of(block.feature);
    const auto first = static_cast<size_t>(feature.first);
    const size_t id_bytes = feature.writes_64 ? sizeof(int64_t) : sizeof(int32_t);
    set_counts(sent, block, record_of(owner, sent));
    sent.dense_lengths = feature.lengths;
    sent.sparse_lengths = nullptr;
    sent.codes = nullptr;
    local_blocks_.push_back(
        {.lengths = feature.lengths,
         .ids = {static_cast<const std::byte*>(local_.ids) + first * id_bytes, feature.writes_64},
         .weights = local_.weights == nullptr ? nullptr : local_.weights + first});
  }
}

// Where the blocks of messages to other ranks repeat ids, each different one travels once; what
// then is shorter moves up in its message.
void RoutedBatch::deduplicate(const comm::MessageBuffer& buffer,
                              compute::RoutingOperations& routing, compute::HostStaging* staging) {
  deduplicated_.clear();
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    if (owner == layout_.rank()) continue;
    const size_t first = first_sent_[static_cast<size_t>(owner)];
    const std::span<SentBlock> sent = sent_to(owner);
    for (size_t r = 0; r < sent.size(); ++r) {
      const Block& block = block_of(owner, sent[r]);
      const BlockRecord record = record_of(owner, sent[r]);
      scratch_.plain_blocks[first + r] = {.lengths_bytes = lengths_bytes(record),
                                          .ids = static_cast<int64_t>(record.ids),
                                          .is_64 = of(block.feature).writes_64,
                                          .weights_bytes = weights_bytes(record, weighted(block))};
    }
    deduplicated_.push_back(
        {.data = bodies_[static_cast<size_t>(owner)] + input_head_bytes(sent.size()),
         .blocks = std::span(scratch_.plain_blocks).subspan(first, sent.size()),
         .unique = std::span(scratch_.unique).subspan(first, sent.size())});
  }
  if (staging != nullptr) {
    staging->deduplicate_ids(compute::WrittenBlocks(places_, scratch_.sections),
                             {bodies_.front(), body_bytes_}, deduplicated_);
  } else {
    routing.deduplicate_ids(deduplicated_);
  }
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
    buffer.publish(message + input_head_bytes(sent_to(owner).size()),
                   message + messages_[static_cast<size_t>(owner)].size());
  }
}

}  // namespace shardrec::embedding
