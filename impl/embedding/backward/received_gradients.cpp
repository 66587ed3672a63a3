#include "embedding/backward/received_gradients.h"

#include <cstring>

#include "core/error.h"

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
      blocks_(static_cast<size_t>(layout.ranks()) * own_blocks_.size()),
      rows_(layout.parts_of(layout.rank()).size()),
      memory_(memory) {
  located_.reserve(blocks_.size());
}

void ReceivedGradients::open(const Inbox& inbox, std::span<const comm::ConstBytes> messages,
                             std::span<const comm::ConstBytes> bodies,
                             std::span<const std::span<const GradientRows>> lent) {
  for (int source = 0; source < layout_.ranks(); ++source) {
    const comm::ConstBytes message = messages[static_cast<size_t>(source)];
    const comm::ConstBytes body = bodies[static_cast<size_t>(source)];
    const auto received = inbox.blocks(source);
    GradientHeader header;
    std::memcpy(&header, message.data(), sizeof header);
    const std::span<const GradientRows> lent_blocks = lent[static_cast<size_t>(source)];
    if (!lent_blocks.empty() && lent_blocks.size() != own_blocks_.size()) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", source, " lends gradients of ", lent_blocks.size(),
                                " blocks, ", own_blocks_.size(), " were expected"),
                 {.rank = int64_t{source}, .operation = "backward"});
    }
    size_t at = 0;
    size_t again = 0;  // bytes of the second section
    for (size_t b = 0; b < own_blocks_.size(); ++b) {
      GradientRows& rows = blocks_[static_cast<size_t>(source) * own_blocks_.size() + b];
      const int64_t width = layout_.parts()[static_cast<size_t>(own_blocks_[b].part)].width;
      const size_t bytes = rows_bytes(received[b].rows, width);
      if (!lent_blocks.empty() && lent_blocks[b].rows != nullptr) {
        rows = lent_blocks[b];
        continue;
      }
      rows = {static_cast<const float*>(static_cast<const void*>(body.data() + at)), width};
      at += bytes;
      if (header.unscaled != 0 && !own_blocks_[b].sequence) again += bytes;
    }
    if (at + again != body.size()) fail_length(source, body.size(), at + again);
  }
}

void ReceivedGradients::locate(const Inbox& inbox, const IndexPlan& plan,
                               compute::Backend& backend) {
  size_t bags = 0;
  for (size_t p = 0; p < rows_.size(); ++p) bags += static_cast<size_t>(plan.bags(p));
  const float** to = memory_.resize_as<const float*>(bags).data();
  located_.clear();
  size_t own = 0;
  for (size_t p = 0; p < rows_.size(); ++p) {
    rows_[p] = to;
    const int32_t part = layout_.parts_of(layout_.rank())[p];
    for (; own < own_blocks_.size() && own_blocks_[own].part == part; ++own) {
      for (int source = 0; plan.bags(p) != 0 && source < layout_.ranks(); ++source) {
        const ReceivedBlock& received = inbox.blocks(source)[own];
        const GradientRows& gradient = block(source, own);
        located_.push_back({.bags = &received,
                            .rows = received.rows,
                            .data = gradient.rows,
                            .stride = gradient.stride,
                            .by_sample = gradient.by_sample && !own_blocks_[own].sequence,
                            .out = to});
        to += received.rows;
      }
    }
  }
  backend.gradients().locate_gradients(located_);
}

}  // namespace shardrec::embedding
