#include "embedding/exchange/inbox.h"

#include <algorithm>
#include <cstring>

#include "core/memory.h"
#include "embedding/batch/batch.h"

namespace shardrec::embedding {
namespace {

// Where the lengths of no bag are.
constexpr SparseLength kNoLengths[1] = {};

template <class T>
const T* view(comm::ConstBytes message, size_t offset) {
  return static_cast<const T*>(static_cast<const void*>(message.data() + offset));
}

[[noreturn]] void corrupt(int source, const char* what) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", source, " sent an input message whose ", what),
             {.rank = int64_t{source}, .operation = "forward"});
}

}  // namespace

Inbox::Inbox(const Layout& layout, comm::BodyCarrier& bodies, StepScratch& scratch)
    : layout_(layout),
      backend_(bodies.backend()),
      scratch_(scratch),
      checks_bags_(!bodies.stays_in_process()),
      received_(bodies.make_received()),
      heads_(static_cast<size_t>(layout.ranks())),
      per_source_(layout.blocks_of(layout.rank()).size()),
      headers_(static_cast<size_t>(layout.ranks())),
      places_(per_source_ * static_cast<size_t>(layout.ranks())),
      next_sample_(per_source_),
      ids_memory_(bodies.backend().memory()) {
  for (const Block& block : layout.blocks_of(layout.rank())) {
    const Part& part = layout.parts()[static_cast<size_t>(block.part)];
    of_group_.push_back(layout.takes_from_all(part) ? 0 : 1);
  }
}

void Inbox::open(std::span<const comm::ConstBytes> messages, std::span<const LocalBlock> local) {
  refused_ = -1;
  differing_ = -1;
  all_done_ = true;
  weighted_ = false;
  ids_received_ = 0;
  global_batch_ = 0;
  group_batch_ = 0;
  most_samples_ = 0;
  for (int source = 0; source < layout_.ranks(); ++source) {
    read_header(source, messages[static_cast<size_t>(source)]);
  }
  if (refused_ >= 0 || differing_ >= 0) return;
  for (int source = 0; source < layout_.ranks(); ++source) {
    heads_[static_cast<size_t>(source)] =
        std::min(head_bytes(source), messages[static_cast<size_t>(source)].size());
  }
  count_records(messages);
  std::fill(next_sample_.begin(), next_sample_.end(), 0);
  const auto bodies = received_->open(messages, heads_);
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto s = static_cast<size_t>(source);
    const auto apart = source == layout_.rank() ? local : std::span<const LocalBlock>();
    if (const char* what = cut(source, messages[s], bodies[s], apart); what != nullptr) {
      check_bags();  // what is wrong before that is said first
      corrupt(source, what);
    }
  }
  check_bags();
  expand();
}

void Inbox::read_header(int source, comm::ConstBytes message) {
  InputHeader& header = headers_[static_cast<size_t>(source)];
  if (message.size() < sizeof header) corrupt(source, "header is cut off");
  std::memcpy(&header, message.data(), sizeof header);
  if (header.batch_size < 0 || header.batch_size > UINT32_MAX) {
    corrupt(source, "batch size is absurd");
  }
  if (records_of(source) > per_source_) corrupt(source, "records are absurd");
  if (!header.verdict.good() && refused_ < 0) refused_ = source;
  if (header.weight_gradient != headers_[0].weight_gradient && differing_ < 0) {
    differing_ = source;
  }
  all_done_ = all_done_ && header.no_more_data != 0;
  weighted_ = weighted_ || header.weighted != 0;
  global_batch_ += header.batch_size;
  if (layout_.same_group(source, layout_.rank())) group_batch_ += header.batch_size;
}

void Inbox::count_records(std::span<const comm::ConstBytes> messages) {
  blocks_with_ids_ = 0;
  empty_blocks_ = 0;
  size_t records = 0;
  size_t coded = 0;
  for (int source = 0; source < layout_.ranks(); ++source) {
    const comm::ConstBytes message = messages[static_cast<size_t>(source)];
    records += records_of(source);
    empty_blocks_ += source == 0 || samples_of(source) != samples_of(source - 1) ? 1 : 0;
    for (size_t r = 0; r < records_of(source) && input_head_bytes(r + 1) <= message.size(); ++r) {
      BlockRecord record;
      std::memcpy(&record, message.data() + input_head_bytes(r), sizeof record);
      blocks_with_ids_ += record.ids != 0 ? 1 : 0;
      coded += record.unique != 0 ? 1 : 0;
    }
  }
  coded_blocks_.clear();
  coded_source_.clear();
  coded_.clear();
  wrong_codes_.clear();
  scratch_.bags.clear();
  scratch_.bags_source.clear();
  scratch_.defects.clear();
  blocks_.clear();
  core::reserve_with_slack(blocks_, empty_blocks_ + records);
  for (int source = 0; source < layout_.ranks(); ++source) {
    if (source != 0 && samples_of(source) == samples_of(source - 1)) continue;
    ReceivedBlock& empty = blocks_.emplace_back();
    empty.samples = samples_of(source);
    empty.sparse_lengths = kNoLengths;
  }
  next_empty_ = 0;
  core::reserve_with_slack(coded_blocks_, coded);
  core::reserve_with_slack(coded_source_, coded);
  core::reserve_with_slack(coded_, coded);
  core::reserve_with_slack(wrong_codes_, coded);
  core::reserve_with_slack(scratch_.bags, blocks_with_ids_);
  core::reserve_with_slack(scratch_.bags_source, blocks_with_ids_);
  core::reserve_with_slack(scratch_.defects, blocks_with_ids_);
}

const char* Inbox::cut(int source, comm::ConstBytes message, comm::ConstBytes body,
                       std::span<const LocalBlock> local) {
  if (head_bytes(source) > message.size()) return "records are cut off";
  const auto s = static_cast<size_t>(source);
  const size_t records = records_of(source);
  const int64_t samples = samples_of(source);
  const bool in_group = layout_.same_group(source, layout_.rank());
  if (source != 0 && samples != samples_of(source - 1)) ++next_empty_;
  size_t at = 0;
  size_t r = 0;
  BlockRecord record{.block = UINT32_MAX};
  const auto read = [&] {
    if (r < records) std::memcpy(&record, message.data() + input_head_bytes(r), sizeof record);
  };
  read();
  for (size_t b = 0; b < per_source_; ++b) {
    uint32_t& place = places_[s * per_source_ + b];
    if (r == records || record.block != b) {
      place = next_empty_;
      if (in_group || of_group_[b] == 0) next_sample_[b] += samples;
    } else {
      if (!in_group && of_group_[b] != 0) return "records are absurd";
      place = static_cast<uint32_t>(blocks_.size());
      const char* const what =
          local.empty() ? cut_block(source, record, body, at) : take_local(record, local[r]);
      if (what != nullptr) return what;
      next_sample_[b] += record.samples;
      ++r;
      read();
    }
    most_samples_ = std::max(most_samples_, next_sample_[b]);
  }
  if (r != records) return "records are absurd";
  return at == body.size() ? nullptr : "length is not what its records say";
}

ReceivedBlock* Inbox::add_block(const BlockRecord& record) {
  if (record.ids > static_cast<uint64_t>(kMostIds) || record.bags > record.ids ||
      record.bags > record.samples || record.unique > record.ids) {
    return nullptr;
  }
  const Block& own = layout_.blocks_of(layout_.rank())[record.block];
  ReceivedBlock& block = blocks_.emplace_back();
  block.first_sample = next_sample_[record.block];
  block.ids = static_cast<int64_t>(record.ids);
  block.bags = record.bags;
  block.rows = own.sequence ? block.ids : block.bags;
  block.samples = record.samples;
  ids_received_ += block.ids;
  return &block;
}

const char* Inbox::take_local(const BlockRecord& record, const LocalBlock& local) {
  ReceivedBlock* const block = add_block(record);
  if (block == nullptr) return "records are absurd";
  block->dense_lengths = local.lengths;
  block->id_data = local.ids;
  block->weights = local.weights;
  return nullptr;
}

const char* Inbox::cut_block(int source, const BlockRecord& record, comm::ConstBytes body,
                             size_t& at) {
  const Block& own = layout_.blocks_of(layout_.rank())[record.block];
  const size_t index = blocks_.size();
  ReceivedBlock* const added = add_block(record);
  if (added == nullptr) return "records are absurd";
  ReceivedBlock& block = *added;
  const bool ids_are_64 = layout_.ids_are_64(layout_.parts()[static_cast<size_t>(own.part)].table);
  const bool weighted = headers_[static_cast<size_t>(source)].weighted != 0 && !own.sequence;
  const size_t lengths = lengths_bytes(record);
  const size_t ids = ids_bytes(record, ids_are_64);
  const size_t weights = weights_bytes(record, weighted);
  if (lengths + ids + weights > body.size() - at) return "blocks are cut off";
  if (record.sparse != 0) {
    block.sparse_lengths = view<SparseLength>(body, at);
  } else {
    block.dense_lengths = view<uint32_t>(body, at);
  }
  block.id_data = {body.data() + at + lengths, ids_are_64};
  if (record.unique != 0) {
    block.unique = record.unique;
    block.unique_ids = block.id_data;
    coded_blocks_.push_back(index);
    coded_source_.push_back(source);
    coded_.push_back(
        {.codes = body.data() + at + lengths + compute::code_offset(record.unique, ids_are_64),
         .count = block.ids,
         .unique_ids = block.unique_ids,
         .unique = block.unique});
  }
  if (weighted) block.weights = view<float>(body, at + lengths + ids);
  at += lengths + ids + weights;
  // What was written in this process is what its records say. Without ids, there are lengths where a rank has
  // written other ones than this build would.
  if (checks_bags_ && source != layout_.rank() && lengths != 0) {
    scratch_.bags.push_back(block);
    scratch_.bags_source.push_back(source);
  }
  return nullptr;
}

// The lengths of other ranks must be what their records say; everything behind relies on it. On a device the host
// waits for this.
void Inbox::check_bags() {
  if (scratch_.bags.empty()) return;
  scratch_.defects.assign(scratch_.bags.size(), compute::BagDefect::kNone);
  backend_.routing().check_bags(scratch_.bags, scratch_.defects);
  for (size_t b = 0; b < scratch_.defects.size(); ++b) {
    switch (scratch_.defects[b]) {
      case compute::BagDefect::kNone:
        break;
      case compute::BagDefect::kOrder:
        corrupt(scratch_.bags_source[b], "bags are out of order");
      case compute::BagDefect::kSum:
        corrupt(scratch_.bags_source[b], "lengths do not add up");
    }
  }
}

void Inbox::expand() {
  if (coded_.empty()) return;
  const auto bytes_of = [](const compute::CodedIds& coded) {
    return align_up(static_cast<size_t>(coded.count) * (coded.unique_ids.is_64 ? 8 : 4), 64);
  };
  size_t bytes = 0;
  for (const compute::CodedIds& coded : coded_) bytes += bytes_of(coded);
  std::byte* out = ids_memory_.resize(bytes);
  for (size_t c = 0; c < coded_.size(); ++c) {
    coded_[c].out = out;
    blocks_[coded_blocks_[c]].id_data.data = out;
    out += bytes_of(coded_[c]);
  }
  wrong_codes_.assign(coded_.size(), {});
  backend_.routing().expand_ids(coded_, wrong_codes_);
  for (size_t c = 0; c < coded_.size(); ++c) {
    if (wrong_codes_[c].position < 0) continue;
    corrupt(coded_source_[c], "codes are out of range");
  }
}

}  // namespace shardrec::embedding
