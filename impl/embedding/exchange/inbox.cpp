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

Inbox::Inbox(const Layout& layout, const std::shared_ptr<compute::Memory>& memory)
    : layout_(layout),
      per_source_(layout.blocks_of(layout.rank()).size()),
      headers_(static_cast<size_t>(layout.ranks())),
      blocks_(per_source_ * static_cast<size_t>(layout.ranks())),
      ids_memory_(memory) {
  coded_.reserve(blocks_.size());
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
    const comm::ConstBytes message = messages[static_cast<size_t>(source)];
    InputHeader& header = headers_[static_cast<size_t>(source)];
    if (message.size() < sizeof header) corrupt(source, "header is cut off");
    std::memcpy(&header, message.data(), sizeof header);
    if (header.batch_size < 0 || header.batch_size > UINT32_MAX)
      corrupt(source, "batch size is absurd");
    if (!header.verdict.good() && refused_ < 0) refused_ = source;
    if (header.weight_gradient != headers_[0].weight_gradient && differing_ < 0) {
      differing_ = source;
    }
    all_done_ = all_done_ && header.no_more_data != 0;
    weighted_ = weighted_ || header.weighted != 0;
    global_batch_ += header.batch_size;
  }
  if (refused_ >= 0 || differing_ >= 0) return;
  coded_.clear();
  for (int source = 0; source < layout_.ranks(); ++source) {
    cut(source, messages[static_cast<size_t>(source)]);
  }
  decode();
}

void Inbox::decode() {
  size_t bytes = 0;
  for (const Coded& coded : coded_) {
    const ReceivedBlock& block = blocks_[coded.block];
    bytes += align_up(static_cast<size_t>(block.ids) * (block.id_data.is_64 ? 8 : 4), 64);
  }
  std::byte* out = ids_memory_.resize(bytes);
  for (const Coded& coded : coded_) {
    ReceivedBlock& block = blocks_[coded.block];
    const auto write = [&](auto code, auto id) {
      using Code = decltype(code);
      using Id = decltype(id);
      const auto* codes = static_cast<const Code*>(static_cast<const void*>(coded.codes));
      const auto* unique = static_cast<const Id*>(block.unique_ids.data);
      auto* ids = static_cast<Id*>(static_cast<void*>(out));
      for (int64_t i = 0; i < block.ids; ++i) {
        if (codes[i] >= block.unique) corrupt(coded.source, "codes are out of range");
        ids[i] = unique[codes[i]];
      }
    };
    const auto with_code = [&](auto id) {
      switch (code_bytes(static_cast<uint64_t>(block.unique))) {
        case 1:
          return write(uint8_t{}, id);
        case 2:
          return write(uint16_t{}, id);
        default:
          return write(uint32_t{}, id);
      }
    };
    block.id_data.is_64 ? with_code(int64_t{}) : with_code(int32_t{});
    block.id_data.data = out;
    out += align_up(static_cast<size_t>(block.ids) * (block.id_data.is_64 ? 8 : 4), 64);
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
        record.bags > record.samples || record.unique > record.ids) {
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
    if (record.unique != 0) {
      const size_t id = ids_are_64 ? sizeof(int64_t) : sizeof(int32_t);
      block.unique = record.unique;
      block.unique_ids = block.id_data;
      coded_.push_back(
          {first + b, source, message.data() + at + lengths + align_up(record.unique * id, 8)});
    }
    if (weighted) block.weights = view<float>(message, at + lengths + ids);
    at += lengths + ids + weights;
    check_lengths(block, source);
    ids_received_ += block.ids;
  }
  if (at != message.size()) corrupt(source, "length is not what its records say");
}

}  // namespace shardrec::embedding
