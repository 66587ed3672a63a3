#include "embedding/backward/received_gradients.h"

#include <cstring>

#include "core/error.h"
#include "core/memory.h"

namespace shardrec::embedding {
namespace {

[[noreturn]] void fail_length(int source, size_t bytes, size_t expected) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", source, " sent gradients of ", bytes, " bytes, ", expected,
                            " were expected"),
             {.rank = int64_t{source}, .operation = "backward"});
}

}  // namespace

ReceivedGradients::ReceivedGradients(const Layout& layout,
                                     const std::shared_ptr<compute::Memory>& memory)
    : layout_(layout),
      own_blocks_(layout.blocks_of(layout.rank())),
      heads_(static_cast<size_t>(layout.ranks()), sizeof(GradientHeader)),
      rows_(layout.parts_of(layout.rank()).size()),
      memory_(memory) {
  for (const Block& block : own_blocks_) {
    updated_.push_back(layout.updates(layout.parts()[static_cast<size_t>(block.part)]) ? 1 : 0);
  }
}

void ReceivedGradients::open(const Inbox& inbox, std::span<const comm::ConstBytes> messages,
                             std::span<const comm::ConstBytes> bodies,
                             std::span<const std::span<const GradientRows>> lent) {
  blocks_.clear();
  core::reserve_with_slack(blocks_, inbox.present_blocks());
  blocks_.resize(inbox.present_blocks());
  for (int source = 0; source < layout_.ranks(); ++source) {
    const comm::ConstBytes message = messages[static_cast<size_t>(source)];
    const comm::ConstBytes body = bodies[static_cast<size_t>(source)];
    const auto received = inbox.blocks(source);
    GradientHeader header;
    std::memcpy(&header, message.data(), sizeof header);
    const std::span<const GradientRows> lent_blocks = lent[static_cast<size_t>(source)];
    size_t with_rows = 0;
    const auto has_gradients = [&](size_t b) { return received[b].rows != 0 && updated_[b] != 0; };
    for (size_t b = 0; b < own_blocks_.size(); ++b) with_rows += has_gradients(b) ? 1 : 0;
    if (!lent_blocks.empty() && lent_blocks.size() != with_rows) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", source, " lends gradients of ", lent_blocks.size(),
                                " blocks, ", with_rows, " were expected"),
                 {.rank = int64_t{source}, .operation = "backward"});
    }
    auto next_lent = lent_blocks.begin();
    size_t at = 0;
    size_t again = 0;  // bytes of the second section
    for (size_t b = 0; b < own_blocks_.size(); ++b) {
      if (!has_gradients(b)) continue;
      GradientRows& rows = blocks_[received.number(b)];
      const int64_t width = layout_.parts()[static_cast<size_t>(own_blocks_[b].part)].width;
      const size_t bytes = rows_bytes(received[b].rows, width);
      if (!lent_blocks.empty()) {
        const GradientRows& lent_rows = *next_lent++;
        if (lent_rows.rows != nullptr) {
          rows = lent_rows;
          continue;
        }
      }
      rows = {static_cast<const float*>(static_cast<const void*>(body.data() + at)), width};
      at += bytes;
      if (header.unscaled != 0 && !own_blocks_[b].sequence) again += bytes;
    }
    if (at + again != body.size()) fail_length(source, body.size(), at + again);
  }
}

void ReceivedGradients::list(const Inbox& inbox, const IndexPlan& plan) {
  size_t bags = 0;
  for (size_t p = 0; p < rows_.size(); ++p) bags += static_cast<size_t>(plan.bags(p));
  const float** to = memory_.resize_as<const float*>(bags).data();
  located_.clear();
  first_located_.assign(1, 0);
  core::reserve_with_slack(located_, inbox.blocks_with_ids());
  size_t own = 0;
  for (size_t p = 0; p < rows_.size(); ++p) {
    rows_[p] = to;
    const int32_t part = layout_.parts_of(layout_.rank())[p];
    for (; own < own_blocks_.size() && own_blocks_[own].part == part; ++own) {
      for (int source = 0; plan.bags(p) != 0 && source < layout_.ranks(); ++source) {
        const auto blocks = inbox.blocks(source);
        const ReceivedBlock& received = blocks[own];
        if (received.rows == 0) continue;
        const GradientRows& gradient = blocks_[blocks.number(own)];
        located_.push_back({.bags = &received,
                            .rows = received.rows,
                            .data = gradient.rows,
                            .stride = gradient.stride,
                            .by_sample = gradient.by_sample && !own_blocks_[own].sequence,
                            .out = to});
        to += received.rows;
      }
    }
    first_located_.push_back(located_.size());
  }
}

}  // namespace shardrec::embedding
