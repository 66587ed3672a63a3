#include "embedding/inbox.h"

#include <algorithm>
#include <cstring>

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

// The lengths must be what the record says; everything behind relies on it.
void check_lengths(const ReceivedBlock& block, int source) {
  uint64_t ids = 0;
  int64_t bags = 0;
  int64_t before = -1;
  if (block.sparse_lengths != nullptr) {
    for (int64_t b = 0; b < block.bags; ++b) {
      const SparseLength& entry = block.sparse_lengths[b];
      if (entry.sample >= block.samples || entry.sample <= before || entry.count == 0) {
        corrupt(source, "bags are out of order");
      }
      before = entry.sample;
      ids += entry.count;
      ++bags;
    }
  } else {
    for (int64_t s = 0; s < block.samples; ++s) {
      ids += block.dense_lengths[s];
      bags += block.dense_lengths[s] != 0;
    }
  }
  if (ids != static_cast<uint64_t>(block.ids) || bags != block.bags) {
    corrupt(source, "lengths do not add up");
  }
}

}  // namespace

Inbox::Inbox(const Layout& layout)
    : layout_(layout),
      per_source_(layout.blocks_of(layout.rank()).size()),
      headers_(static_cast<size_t>(layout.ranks())),
      blocks_(per_source_ * static_cast<size_t>(layout.ranks())) {}

void Inbox::open(std::span<const comm::ConstBytes> messages) {
  refused_ = -1;
  all_done_ = true;
  weighted_ = false;
  ids_received_ = 0;
  global_batch_ = 0;
  most_samples_ = 0;
  for (int source = 0; source < layout_.ranks(); ++source) {
    const comm::ConstBytes message = messages[static_cast<size_t>(source)];
    InputHeader& header = headers_[static_cast<size_t>(source)];
    if (message.size() < sizeof header) corrupt(source, "header is cut off");
    std::memcpy(&header, message.data(), sizeof header);
    if (header.batch_size < 0 || header.batch_size > UINT32_MAX)
      corrupt(source, "batch size is absurd");
    if (!header.verdict.good() && refused_ < 0) refused_ = source;
    all_done_ = all_done_ && header.no_more_data != 0;
    weighted_ = weighted_ || header.weighted != 0;
    global_batch_ += header.batch_size;
  }
  if (refused_ >= 0) return;
  for (int source = 0; source < layout_.ranks(); ++source) {
    cut(source, messages[static_cast<size_t>(source)]);
  }
}

void Inbox::cut(int source, comm::ConstBytes message) {
  const InputHeader& header = headers_[static_cast<size_t>(source)];
  const auto blocks = layout_.blocks_of(layout_.rank());
  const size_t first = static_cast<size_t>(source) * per_source_;
  size_t record_at = align_up(sizeof(InputHeader), 8);
  size_t at = record_at;
  if (header.has_blocks != 0) {
    at += blocks.size() * sizeof(BlockRecord);
    if (at > message.size()) corrupt(source, "records are cut off");
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    ReceivedBlock& block = blocks_[first + b];
    block = {};
    if (source != 0) {
      const ReceivedBlock& before = blocks_[first - per_source_ + b];
      block.first_sample = before.first_sample + before.samples;
    }
    if (header.has_blocks == 0) continue;
    const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
    const bool ids_are_64 = layout_.ids_are_64(part.table);
    BlockRecord record;
    std::memcpy(&record, message.data() + record_at, sizeof record);
    record_at += sizeof record;
    if (record.ids > static_cast<uint64_t>(kMostIds) || record.bags > record.ids ||
        record.bags > record.samples) {
      corrupt(source, "records are absurd");
    }
    const bool weighted = header.weighted != 0 && !blocks[b].sequence;
    const size_t lengths = lengths_bytes(record);
    const size_t ids = ids_bytes(record, ids_are_64);
    const size_t weights = weights_bytes(record, weighted);
    if (lengths + ids + weights > message.size() - at) corrupt(source, "blocks are cut off");
    block.ids = static_cast<int64_t>(record.ids);
    block.bags = record.bags;
    block.rows = blocks[b].sequence ? block.ids : block.bags;
    block.samples = record.samples;
    most_samples_ = std::max(most_samples_, block.first_sample + block.samples);
    if (record.sparse != 0) {
      block.sparse_lengths = view<SparseLength>(message, at);
    } else {
      block.dense_lengths = view<uint32_t>(message, at);
    }
    block.id_data = {message.data() + at + lengths, ids_are_64};
    if (weighted) block.weights = view<float>(message, at + lengths + ids);
    at += lengths + ids + weights;
    check_lengths(block, source);
    ids_received_ += block.ids;
  }
  if (at != message.size()) corrupt(source, "length is not what its records say");
}

}  // namespace shardrec::embedding
