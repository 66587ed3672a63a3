#include "embedding/forward/node_sums.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "embedding/exchange/wire.h"

namespace shardrec::embedding {
namespace {

[[noreturn]] void fail_length(int owner) {
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", owner, " sent partial sums that are not as long as they say"),
             {.rank = int64_t{owner}, .operation = "forward"});
}

}  // namespace

NodeSums::NodeSums(const Layout& layout)
    : layout_(layout),
      heads_(static_cast<size_t>(layout.ranks())),
      rests_(static_cast<size_t>(layout.ranks())),
      messages_(static_cast<size_t>(layout.ranks())) {
  const int32_t node = layout.node_of(layout.rank());
  first_owner_ = layout.ranks();
  size_t blocks = 0;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    if (layout.node_of(rank) != node) {
      if (layout.adder(rank, node) == layout.rank()) sources_.push_back(rank);
      continue;
    }
    first_owner_ = std::min(first_owner_, rank);
    end_owner_ = rank + 1;
    first_block_.push_back(blocks);
    blocks += layout.blocks_of(rank).size();
  }
  size_t addends = 0;
  const auto features = static_cast<int32_t>(layout.model().features.size());
  for (int32_t feature = 0; feature < features; ++feature) {
    const auto f = static_cast<size_t>(feature);
    const int32_t number = layout.model().features[f].table;
    const TableLayout& table = layout.table(number);
    const auto k = static_cast<size_t>(
        std::lower_bound(table.features.begin(), table.features.end(), feature) -
        table.features.begin());
    for (const Segment& segment : layout.segments(number)) {
      for (size_t n = 0; n < segment.nodes.size(); ++n) {
        if (segment.nodes[n] != node || !layout.sums_segment(feature, segment, n)) continue;
        Sum& sum = sums_.emplace_back();
        sum.cols = segment.cols;
        for (size_t a = segment.node_begin(n); a < segment.node_end(n); ++a) {
          const int32_t p = layout.answering(number)[static_cast<size_t>(segment.addends[a].part)];
          const int owner = layout.parts()[static_cast<size_t>(p)].owner;
          sum.addends.push_back({first_block_[static_cast<size_t>(owner - first_owner_)] +
                                     static_cast<size_t>(layout.block_of(p, k)),
                                 segment.addends[a].offset});
        }
        addends += sum.addends.size();
      }
    }
  }
  for (int owner = first_owner_; owner < end_owner_; ++owner) {
    size_t partials = 0;
    for (const int source : sources_) {
      for (const Block& block : layout.blocks_of(owner)) {
        partials += layout.goes_by_node(block, source) ? 1 : 0;
      }
    }
    heads_[static_cast<size_t>(owner)] = partial_head_bytes(partials);
  }
  partials_.resize(sources_.size() * blocks);
  received_.reserve(partials_.size());
  received_partial_.reserve(partials_.size());
  node_sums_.reserve(sources_.size() * sums_.size());
  addends_.reserve(sources_.size() * addends);
  counts_.reserve(std::max(partials_.size(), node_sums_.capacity()));
}

std::span<const size_t> NodeSums::heads(std::span<const comm::ConstBytes> messages) const {
  for (size_t owner = 0; owner < heads_.size(); ++owner) {
    if (messages[owner].size() < heads_[owner]) fail_length(static_cast<int>(owner));
  }
  return heads_;
}

void NodeSums::read(const std::byte* header, comm::ConstBytes& rest, Partial& partial) {
  PartialHeader said;
  std::memcpy(&said, header, sizeof said);
  partial.samples = said.samples;
  partial.count = said.rows;
  const size_t presence = presence_bytes(partial.samples);
  const size_t rows = rows_bytes(partial.count, partial.width);
  if (rest.size() < presence || rest.size() - presence < rows) fail_length(partial.owner);
  partial.rows = {static_cast<const uint64_t*>(static_cast<const void*>(rest.data())),
                  static_cast<const float*>(static_cast<const void*>(rest.data() + presence)),
                  partial.width};
  rest = rest.subspan(presence + rows);
}

std::span<const comm::ConstBytes> NodeSums::open(std::span<const comm::ConstBytes> messages,
                                                 std::span<const comm::ConstBytes> bodies,
                                                 compute::Backend& backend) {
  std::copy(bodies.begin(), bodies.end(), rests_.begin());
  const size_t blocks = sources_.empty() ? 0 : partials_.size() / sources_.size();
  received_.clear();
  received_partial_.clear();
  for (int owner = first_owner_; owner < end_owner_; ++owner) {
    const auto own = layout_.blocks_of(owner);
    const std::byte* header = messages[static_cast<size_t>(owner)].data();
    for (size_t s = 0; s < sources_.size(); ++s) {
      Partial* partials =
          partials_.data() + s * blocks + first_block_[static_cast<size_t>(owner - first_owner_)];
      for (size_t b = 0; b < own.size(); ++b) {
        if (!layout_.goes_by_node(own[b], sources_[s])) continue;
        partials[b].owner = owner;
        partials[b].width = layout_.parts()[static_cast<size_t>(own[b].part)].width;
        read(header, rests_[static_cast<size_t>(owner)], partials[b]);
        header += sizeof(PartialHeader);
        received_.push_back({.addends = {&partials[b].rows, 1}, .samples = partials[b].samples});
        received_partial_.push_back(&partials[b]);
      }
    }
  }
  check_rows(backend);
  node_sums_.clear();
  addends_.clear();
  for (size_t s = 0; s < sources_.size(); ++s) {
    for (const Sum& sum : sums_) add_sum(sources_[s], sum, partials_.data() + s * blocks);
  }
  return rests_;
}

// Has each partial as many rows as bits?
void NodeSums::check_rows(compute::Backend& backend) {
  counts_.resize(received_.size());
  backend.assembly().count_node_sums(received_, counts_);
  for (size_t p = 0; p < counts_.size(); ++p) {
    const Partial& partial = *received_partial_[p];
    if (counts_[p] != partial.count) fail_length(partial.owner);
  }
}

void NodeSums::add_sum(int source, const Sum& sum, const Partial* partials) {
  const int64_t samples = partials[sum.addends[0].block].samples;
  const size_t first = addends_.size();
  for (const Input& addend : sum.addends) {
    const Partial& partial = partials[addend.block];
    if (partial.samples != samples) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("owners of a table know batches of ", samples, " and of ",
                                partial.samples, " samples of rank ", source),
                 {.rank = int64_t{source}, .operation = "forward"});
    }
    addends_.push_back(
        {partial.rows.present, partial.rows.rows + addend.offset, partial.rows.stride});
  }
  node_sums_.push_back(
      {.addends = std::span(addends_).subspan(first), .samples = samples, .cols = sum.cols});
}

void NodeSums::compute(compute::Backend& backend, comm::MessageBuffer& buffer) {
  counts_.resize(node_sums_.size());
  backend.assembly().count_node_sums(node_sums_, counts_);
  size_t bytes = 0;
  for (size_t n = 0; n < node_sums_.size(); ++n) {
    bytes += rows_bytes(counts_[n], node_sums_[n].cols);
  }
  std::byte* const begin = buffer.resize(bytes);
  std::byte* out = begin;
  std::fill(messages_.begin(), messages_.end(), comm::ConstBytes());
  size_t n = 0;
  for (const int source : sources_) {
    std::byte* message = out;
    for (const size_t end = n + sums_.size(); n < end; ++n) {
      node_sums_[n].out = static_cast<float*>(static_cast<void*>(out));
      out += rows_bytes(counts_[n], node_sums_[n].cols);
    }
    messages_[static_cast<size_t>(source)] = buffer.host(message, out);
  }
  backend.assembly().add_on_nodes(node_sums_);
  buffer.publish(begin, out);
}

}  // namespace shardrec::embedding
