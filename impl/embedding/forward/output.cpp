#include "embedding/forward/output.h"

#include <algorithm>
#include <cstring>

#include "core/memory.h"

namespace shardrec::embedding {

PartialSums::PartialSums(const Layout& layout)
    : layout_(layout),
      shard_of_block_(shards_of_blocks(layout)),
      partials_(static_cast<size_t>(layout.ranks())),
      messages_(partials_.size()),
      bodies_(partials_.size()) {
  const int32_t node = layout.node_of(layout.rank());
  for (int to = 0; to < layout.ranks(); ++to) {
    const bool adds = layout.sums_on_nodes() && layout.node_of(to) == node;
    for (int source = 0; adds && source < layout.ranks(); ++source) {
      if (layout.node_of(source) == node || layout.adder(source, node) != to) continue;
      sections_.push_back({.to = to, .source = source, .by_node = true});
    }
    sections_.push_back({.to = to, .source = to, .by_node = false});
  }
}

// Is an own block in a section?
bool PartialSums::sends(std::span<const uint8_t> direct, size_t block,
                        const Section& section) const {
  const Block& own = layout_.blocks_of(layout_.rank())[block];
  if (layout_.goes_by_node(own, section.source) != section.by_node) return false;
  return layout_.answers(layout_.parts()[static_cast<size_t>(own.part)], section.source) &&
         (section.source != layout_.rank() || direct[block] == 0);
}

template <class Visit>
void PartialSums::for_each_sent(const Inbox& inbox, std::span<const uint8_t> direct,
                                const Section& section, Visit visit) const {
  const auto received = inbox.blocks(section.source);
  for (size_t b = 0; b < received.size(); ++b) {
    if (sends(direct, b, section)) visit(b, received[b]);
  }
}

size_t PartialSums::measure(const Inbox& inbox, std::span<const uint8_t> direct) {
  const auto blocks = layout_.blocks_of(layout_.rank());
  std::fill(partials_.begin(), partials_.end(), size_t{0});
  size_t bytes = 0;
  size_t sums = 0;
  size_t own_sums = 0;
  for (const Section& section : sections_) {
    for_each_sent(inbox, direct, section, [&](size_t b, const ReceivedBlock& block) {
      const int64_t rows = block.answers(blocks[b].sequence);
      if (!writes(section, rows)) return;
      ++(section.to == layout_.rank() ? own_sums : sums);
      if (section.by_node) {
        ++partials_[static_cast<size_t>(section.to)];
        bytes += presence_bytes(block.samples);
      }
      bytes += rows_bytes(rows, layout_.parts()[static_cast<size_t>(blocks[b].part)].width);
    });
  }
  for (const size_t partials : partials_) bytes += partial_head_bytes(partials);
  sums_.clear();
  own_sums_.clear();
  core::reserve_with_slack(sums_, sums);
  core::reserve_with_slack(own_sums_, own_sums);
  return bytes;
}

void PartialSums::compute(const Inbox& inbox, std::span<const uint8_t> direct,
                          std::span<const Shard> shards, compute::Backend& backend,
                          comm::MessageBuffer& buffer) {
  const auto blocks = layout_.blocks_of(layout_.rank());
  buffer_ = &buffer;
  std::byte* out = buffer.resize(measure(inbox, direct));
  std::byte* header = out;
  std::byte* message = out;
  std::byte* body = nullptr;  // null: the message has not begun
  for (const Section& section : sections_) {
    const auto to = static_cast<size_t>(section.to);
    if (body == nullptr) {
      const size_t head = partial_head_bytes(partials_[to]);
      const size_t said = partials_[to] * sizeof(PartialHeader);
      if (said != head) std::memset(buffer.host(message + said), 0, head - said);
      out = body = message + head;
    }
    auto& sums = section.to == layout_.rank() ? own_sums_ : sums_;
    for_each_sent(inbox, direct, section, [&](size_t b, const ReceivedBlock& block) {
      const bool sequence = blocks[b].sequence;
      if (!writes(section, block.answers(sequence))) return;
      const Shard& shard = shards[shard_of_block_[b]];
      compute::BagSums sum{.table = shard.table_rows(),
                           .ids = sequence && block.unique != 0 ? block.unique_ids : block.id_data,
                           .weights = block.weights,
                           .bags = sequence ? nullptr : &block,
                           .rows = block.answers(sequence)};
      if (section.by_node) {
        const PartialHeader partial{static_cast<uint32_t>(block.samples),
                                    static_cast<uint32_t>(block.rows)};
        std::memcpy(buffer.host(header), &partial, sizeof partial);
        header += sizeof partial;
        auto* words = static_cast<uint64_t*>(static_cast<void*>(out));
        out += presence_bytes(block.samples);
        sum.present = {words, static_cast<uint64_t*>(static_cast<void*>(out))};
      }
      sum.out = static_cast<float*>(static_cast<void*>(out));
      sums.push_back(sum);
      out += rows_bytes(sum.rows, shard.width());
    });
    if (section.by_node) continue;  // the rank's own section is its last
    messages_[to] = buffer.host(message, out);
    bodies_[to] = {body, out};
    message = header = out;
    body = nullptr;
  }
  backend.lookup().sum_bags(sums_);
  for (int rank = 0; rank < layout_.ranks(); ++rank) {
    if (rank != layout_.rank()) publish(rank);
  }
}

void PartialSums::compute_own(compute::Backend& backend) {
  backend.lookup().sum_bags(own_sums_);
  publish(layout_.rank());
}

void PartialSums::publish(int rank) const {
  const comm::ConstBytes body = bodies_[static_cast<size_t>(rank)];
  buffer_->publish(body.data(), body.data() + body.size());
}

}  // namespace shardrec::embedding
