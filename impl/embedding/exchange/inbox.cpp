#include "embedding/exchange/inbox.h"

#include <algorithm>
#include <cstring>

#include "embedding/batch/batch.h"

namespace shardrec::embedding {
namespace {

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

Inbox::Inbox(const Layout& layout, comm::BodyCarrier& bodies)
    : layout_(layout),
      backend_(bodies.backend()),
      received_(bodies.make_received()),
      heads_(static_cast<size_t>(layout.ranks())),
      per_source_(layout.blocks_of(layout.rank()).size()),
      headers_(static_cast<size_t>(layout.ranks())),
      blocks_(per_source_ * static_cast<size_t>(layout.ranks())),
      ids_memory_(bodies.backend().memory()) {
  coded_blocks_.reserve(blocks_.size());
  coded_.reserve(blocks_.size());
  wrong_codes_.reserve(blocks_.size());
  bags_.reserve(blocks_.size());
  bags_source_.reserve(blocks_.size());
  defects_.reserve(blocks_.size());
}

void Inbox::open(std::span<const comm::ConstBytes> messages) {
  refused_ = -1;
  differing_ = -1;
  all_done_ = true;
  weighted_ = false;
  ids_received_ = 0;
  global_batch_ = 0;
  most_samples_ = 0;
  for (int source = 0; source < layout_.ranks(); ++source) {
    read_header(source, messages[static_cast<size_t>(source)]);
  }
  if (refused_ >= 0 || differing_ >= 0) return;
  coded_blocks_.clear();
  coded_.clear();
  bags_.clear();
  bags_source_.clear();
  for (int source = 0; source < layout_.ranks(); ++source) {
    heads_[static_cast<size_t>(source)] =
        std::min(head_bytes(source), messages[static_cast<size_t>(source)].size());
  }
  const auto bodies = received_->open(messages, heads_);
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto s = static_cast<size_t>(source);
    if (const char* what = cut(source, messages[s], bodies[s]); what != nullptr) {
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
  if (!header.verdict.good() && refused_ < 0) refused_ = source;
  if (header.weight_gradient != headers_[0].weight_gradient && differing_ < 0) {
    differing_ = source;
  }
  all_done_ = all_done_ && header.no_more_data != 0;
  weighted_ = weighted_ || header.weighted != 0;
  global_batch_ += header.batch_size;
}

const char* Inbox::cut(int source, comm::ConstBytes message, comm::ConstBytes body) {
  const bool has_blocks = headers_[static_cast<size_t>(source)].has_blocks != 0;
  const size_t first = static_cast<size_t>(source) * per_source_;
  if (head_bytes(source) > message.size()) return "records are cut off";
  size_t at = 0;
  for (size_t b = 0; b < per_source_; ++b) {
    ReceivedBlock& block = blocks_[first + b];
    block = {};
    if (source != 0) {
      const ReceivedBlock& before = blocks_[first - per_source_ + b];
      block.first_sample = before.first_sample + before.samples;
    }
    if (!has_blocks) continue;
    BlockRecord record;
    std::memcpy(&record, message.data() + input_head_bytes(b), sizeof record);
    if (const char* what = cut_block(source, b, record, body, at); what != nullptr) return what;
  }
  return at == body.size() ? nullptr : "length is not what its records say";
}

const char* Inbox::cut_block(int source, size_t number, const BlockRecord& record,
                             comm::ConstBytes body, size_t& at) {
  const Block& own = layout_.blocks_of(layout_.rank())[number];
  const size_t index = static_cast<size_t>(source) * per_source_ + number;
  ReceivedBlock& block = blocks_[index];
  const bool ids_are_64 = layout_.ids_are_64(layout_.parts()[static_cast<size_t>(own.part)].table);
  if (record.ids > static_cast<uint64_t>(kMostIds) || record.bags > record.ids ||
      record.bags > record.samples || record.unique > record.ids) {
    return "records are absurd";
  }
  const bool weighted = headers_[static_cast<size_t>(source)].weighted != 0 && !own.sequence;
  const size_t lengths = lengths_bytes(record);
  const size_t ids = ids_bytes(record, ids_are_64);
  const size_t weights = weights_bytes(record, weighted);
  if (lengths + ids + weights > body.size() - at) return "blocks are cut off";
  block.ids = static_cast<int64_t>(record.ids);
  block.bags = record.bags;
  block.rows = own.sequence ? block.ids : block.bags;
  block.samples = record.samples;
  most_samples_ = std::max(most_samples_, block.first_sample + block.samples);
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
    coded_.push_back(
        {.codes = body.data() + at + lengths + compute::code_offset(record.unique, ids_are_64),
         .count = block.ids,
         .unique_ids = block.unique_ids,
         .unique = block.unique});
  }
  if (weighted) block.weights = view<float>(body, at + lengths + ids);
  at += lengths + ids + weights;
  if (source != layout_.rank()) {  // what this rank wrote itself is what its records say
    bags_.push_back(block);
    bags_source_.push_back(source);
  }
  ids_received_ += block.ids;
  return nullptr;
}

// The lengths of other ranks must be what their records say; everything behind relies on it.
void Inbox::check_bags() {
  if (bags_.empty()) return;
  defects_.assign(bags_.size(), compute::BagDefect::kNone);
  backend_.routing().check_bags(bags_, defects_);
  for (size_t b = 0; b < defects_.size(); ++b) {
    switch (defects_[b]) {
      case compute::BagDefect::kNone:
        break;
      case compute::BagDefect::kOrder:
        corrupt(bags_source_[b], "bags are out of order");
      case compute::BagDefect::kSum:
        corrupt(bags_source_[b], "lengths do not add up");
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
    corrupt(static_cast<int>(coded_blocks_[c] / per_source_), "codes are out of range");
  }
}

}  // namespace shardrec::embedding
