#include "embedding/forward/direct.h"

#include <algorithm>

namespace shardrec::embedding {

DirectLookup::DirectLookup(const Layout& layout) : layout_(layout) {
  const auto blocks = layout.blocks_of(layout.rank());
  const std::vector<size_t> shards = shards_of_blocks(layout);
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Part& part = layout.parts()[static_cast<size_t>(blocks[b].part)];
    const TableLayout& table = layout.table(part.table);
    // A sequence is direct where all of its ids come here.
    bool direct = layout.answers(part, layout.rank()) && (!blocks[b].sequence || table.whole);
    for (const Segment& segment : layout.segments(part.table)) {
      const bool adds =
          std::any_of(segment.addends.begin(), segment.addends.end(), [&](const Addend& addend) {
            return layout.answering(part.table)[static_cast<size_t>(addend.part)] == blocks[b].part;
          });
      direct = direct && (!adds || segment.addends.size() == 1);
    }
    direct_.push_back(direct ? 1 : 0);
    if (!direct) continue;
    for (const ColumnPiece& columns : part.columns) {
      pieces_.push_back({b, shards[b], blocks[b].feature, columns});
    }
  }
  none_.resize(direct_.size());
  outputs_.reserve(pieces_.size());
}

template <class ReadOf>
void DirectLookup::look_up(const RoutedBatch& routed, std::span<const Shard> shards, int32_t output,
                           compute::Backend& backend, const OutputView& out, size_t bytes,
                           ReadOf read_of) {
  if (!open_) return;
  const auto& output_of = layout_.output().output;
  outputs_.clear();
  for (const Piece& piece : pieces_) {
    if (output_of[static_cast<size_t>(piece.feature)] != output) continue;
    outputs_.push_back(outputs_of(piece, read_of(piece), routed, shards, out));
  }
  backend.lookup().look_up_outputs(outputs_, bytes);
}

void DirectLookup::compute(const RoutedBatch& routed, const Inbox& inbox,
                           std::span<const Shard> shards, int32_t output, compute::Backend& backend,
                           const OutputView& out, size_t bytes) {
  look_up(routed, shards, output, backend, out, bytes, [&](const Piece& piece) {
    const ReceivedBlock& block = inbox.blocks(layout_.rank())[piece.block];
    return Read{.ids = block.id_data,
                .weights = block.weights,
                .chunk_ids = routed.blocks(layout_.rank())[piece.block].chunk_ids};
  });
}

void DirectLookup::compute_pending(const RoutedBatch& routed, std::span<const Shard> shards,
                                   int32_t output, compute::Backend& backend, const OutputView& out,
                                   size_t bytes) {
  look_up(routed, shards, output, backend, out, bytes, [&](const Piece& piece) {
    return Read{.ids = routed.local_ids(piece.feature),
                .weights = routed.local_weights(),
                .chunk_ids = routed.local_chunk_ids(piece.feature),
                .good = routed.local_good()};
  });
}

compute::BagOutputs DirectLookup::outputs_of(const Piece& piece, const Read& read,
                                             const RoutedBatch& routed,
                                             std::span<const Shard> shards,
                                             const OutputView& out) const {
  const plan::Feature& feature = layout_.model().features[static_cast<size_t>(piece.feature)];
  const int64_t column =
      layout_.output().column[static_cast<size_t>(piece.feature)] + piece.columns.col;
  const bool sequence = layout_.is_sequence(piece.feature);
  return {.table = shards[piece.shard].table_rows(piece.columns.offset, piece.columns.cols),
          .ids = read.ids,
          .weights = read.weights,
          .items = routed.items(piece.feature),
          .lengths = sequence ? nullptr : routed.lengths(piece.feature).data(),
          .chunk_ids = read.chunk_ids,
          .out = out.column(column),
          .out_element = out.element,
          .out_stride = static_cast<size_t>(out.stride),
          .mean = feature.pooling == SHARDREC_POOLING_MEAN,
          .good = read.good};
}

}  // namespace shardrec::embedding
