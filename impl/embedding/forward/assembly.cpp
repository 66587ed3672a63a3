#include "embedding/forward/assembly.h"

#include <algorithm>

#include "core/error.h"
#include "core/memory.h"

namespace shardrec::embedding {
namespace {

void check_size(int rank, const char* what, size_t bytes, size_t expected) {
  if (bytes == expected) return;
  core::fail(SHARDREC_CORRUPT_DATA,
             core::sentence("rank ", rank, " sent ", what, " of ", bytes, " bytes, ", expected,
                            " were expected"),
             {.rank = int64_t{rank}, .operation = "forward"});
}

const float* floats_at(comm::ConstBytes message, size_t byte) {
  return static_cast<const float*>(static_cast<const void*>(message.data() + byte));
}

}  // namespace

OutputAssembly::OutputAssembly(const Layout& layout, StepScratch& scratch,
                               const std::shared_ptr<compute::Memory>& memory)
    : layout_(layout), scratch_(scratch), chunk_sums_memory_(memory) {
  size_t nodes = 0;
  for (size_t f = 0; f < layout.model().features.size(); ++f) {
    const int32_t table = layout.model().features[f].table;
    const auto& features = layout.table(table).features;
    const auto feature = static_cast<int32_t>(f);
    const auto number = static_cast<size_t>(
        std::lower_bound(features.begin(), features.end(), feature) - features.begin());
    for (const Segment& segment : layout.segments(table)) {
      columns_.push_back(
          {.feature = feature, .number = number, .segment = &segment, .first_node = nodes});
      nodes += segment.nodes.size();
    }
  }
  nodes_.resize(nodes);
  node_ends_.resize(nodes);
  pooled_.reserve(columns_.size());
  sequences_.reserve(columns_.size());
  for (const Columns& columns : columns_) {
    const Segment& segment = *columns.segment;
    for (size_t n = 0; n < segment.nodes.size(); ++n) {
      if (layout.sums_on_nodes() && segment.nodes[n] != layout.node_of(layout.rank()) &&
          layout.sums_segment(columns.feature, segment, n)) {
        sums_.push_back({&columns, n});
      }
    }
  }
  sum_counts_.reserve(sums_.size());
  sum_rows_.resize(sums_.size());
  message_ends_.resize(static_cast<size_t>(layout.ranks()));
}

void OutputAssembly::open(const RoutedBatch& routed, std::span<const uint8_t> direct,
                          std::span<const comm::ConstBytes> messages) {
  scratch_.rows.clear();
  core::reserve_with_slack(scratch_.rows, routed.sent_blocks());
  scratch_.rows.resize(routed.sent_blocks());
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const comm::ConstBytes message = messages[static_cast<size_t>(owner)];
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    size_t at = 0;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (!layout_.answers(part, layout_.rank())) continue;
      if (owner == layout_.rank() && direct[b] != 0) continue;
      if (layout_.goes_by_node(blocks[b], layout_.rank())) continue;
      const size_t bytes = rows_bytes(sent[b].answers(blocks[b].sequence), part.width);
      if (bytes == 0) continue;
      scratch_.rows[sent.number(b)] = floats_at(message, at);
      at += bytes;
    }
    check_size(owner, "an output message", message.size(), at);
  }
  fill_addends(routed, direct);
}

int32_t OutputAssembly::part_of(const Columns& columns, const Addend& addend) const {
  const int32_t table = layout_.model().features[static_cast<size_t>(columns.feature)].table;
  return layout_.answering(table)[static_cast<size_t>(addend.part)];
}

// Those of a node of a segment. Of many parts most have nothing of a batch: they are left out, but of a sequence, whose
// addends are told by their place.
void OutputAssembly::add_addends(const RoutedBatch& routed, const Columns& columns, size_t node) {
  const Segment& segment = *columns.segment;
  const bool all = layout_.is_sequence(columns.feature);
  for (size_t a = segment.node_begin(node); a < segment.node_end(node); ++a) {
    const int32_t part = part_of(columns, segment.addends[a]);
    const Part& about = layout_.parts()[static_cast<size_t>(part)];
    const auto block = static_cast<size_t>(layout_.block_of(part, columns.number));
    const auto sent = routed.blocks(about.owner);
    if (sent[block].rows == 0 && !all) continue;
    const float* const rows =
        sent.holds_nothing(block) ? nullptr : scratch_.rows[sent.number(block)];
    addends_.push_back(
        {&sent[block], rows == nullptr ? nullptr : rows + segment.addends[a].offset, about.width});
  }
}

void OutputAssembly::fill_addends(const RoutedBatch& routed, std::span<const uint8_t> direct) {
  addends_.clear();
  for (Columns& columns : columns_) {
    columns.first_addend = addends_.size();
    columns.direct = is_direct(columns, direct);
    for (size_t n = 0; n < columns.segment->nodes.size(); ++n) {
      add_addends(routed, columns, n);
      node_ends_[columns.first_node + n] = addends_.size();
    }
  }
  // Nothing is added any more, so that addends stay where they are.
  size_t first = 0;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    nodes_[n] = {.addends = std::span(addends_).subspan(first, node_ends_[n] - first)};
    first = node_ends_[n];
  }
}

bool OutputAssembly::is_direct(const Columns& columns, std::span<const uint8_t> direct) const {
  const int32_t part = part_of(columns, columns.segment->addends[0]);
  return layout_.parts()[static_cast<size_t>(part)].owner == layout_.rank() &&
         direct[static_cast<size_t>(layout_.block_of(part, columns.number))] != 0;
}

void OutputAssembly::open_sums(const RoutedBatch& routed,
                               std::span<const comm::ConstBytes> messages,
                               compute::Backend& backend) {
  size_t counts = 0;
  for (const Sum& sum : sums_) {
    counts += static_cast<size_t>(routed.chunks(sum.columns->feature)) + 1;
  }
  uint32_t* chunk_sums = chunk_sums_memory_.resize_as<uint32_t>(counts).data();
  sum_counts_.clear();
  for (const Sum& sum : sums_) {
    compute::NodeRows& node = nodes_[sum.columns->first_node + sum.node];
    sum_counts_.push_back({node.addends, routed.items(sum.columns->feature), chunk_sums});
    node.chunk_sums = chunk_sums;
    chunk_sums += routed.chunks(sum.columns->feature) + 1;
  }
  backend.assembly().count_chunk_sums(sum_counts_, sum_rows_);
  std::vector<size_t>& at = message_ends_;
  std::fill(at.begin(), at.end(), size_t{0});
  for (size_t s = 0; s < sums_.size(); ++s) {
    const Sum& sum = sums_[s];
    const Segment& segment = *sum.columns->segment;
    compute::NodeRows& node = nodes_[sum.columns->first_node + sum.node];
    const auto adder = static_cast<size_t>(layout_.adder(layout_.rank(), segment.nodes[sum.node]));
    const int64_t rows = sum_rows_[s];
    node.sums = rows == 0 ? nullptr : floats_at(messages[adder], at[adder]);
    at[adder] += rows_bytes(rows, segment.cols);
  }
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    check_size(static_cast<int>(rank), "a message of sums", messages[rank].size(), at[rank]);
  }
}

void OutputAssembly::assemble(const RoutedBatch& routed, const Expansion& expansion, int32_t output,
                              compute::Backend& backend, const OutputView& out) {
  pooled_.clear();
  sequences_.clear();
  for (const Columns& columns : columns_) {
    const int32_t output_of = layout_.output().output[static_cast<size_t>(columns.feature)];
    if (output_of != output || columns.direct) continue;
    if (output == 0) {
      pooled_.push_back(pooled_output(routed, expansion, columns, out));
    } else {
      sequences_.push_back(sequence_output(routed, columns, out));
    }
  }
  backend.assembly().assemble_bags(pooled_);
  backend.assembly().assemble_sequences(sequences_);
}

compute::PooledOutput OutputAssembly::pooled_output(const RoutedBatch& routed,
                                                    const Expansion& expansion,
                                                    const Columns& columns,
                                                    const OutputView& out) const {
  const Segment& segment = *columns.segment;
  const plan::Feature& feature = layout_.model().features[static_cast<size_t>(columns.feature)];
  const int64_t column =
      layout_.output().column[static_cast<size_t>(columns.feature)] + segment.col;
  return {.nodes = {nodes_.data() + columns.first_node, segment.nodes.size()},
          .bags = routed.items(columns.feature),
          .lengths = routed.lengths(columns.feature).data(),
          .mean = feature.pooling == SHARDREC_POOLING_MEAN,
          .samples = expansion.samples(columns.feature),
          .cols = segment.cols,
          .out = out.column(column),
          .out_element = out.element,
          .out_stride = static_cast<size_t>(out.stride)};
}

compute::SequenceOutput OutputAssembly::sequence_output(const RoutedBatch& routed,
                                                        const Columns& columns,
                                                        const OutputView& out) const {
  const auto intervals = routed.intervals(columns.feature);
  return {
      .addends = std::span(addends_).subspan(columns.first_addend, columns.segment->addends.size()),
      .ids = routed.items(columns.feature),
      .intervals = intervals.empty() ? nullptr : intervals.data(),
      .addend_of = columns.segment->addend_of,
      .cols = columns.segment->cols,
      .out = out.column(columns.segment->col),
      .out_element = out.element,
      .out_stride = static_cast<size_t>(out.stride)};
}

}  // namespace shardrec::embedding
