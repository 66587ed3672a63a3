#include "embedding/forward/direct.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace shardrec::embedding {
namespace {

// Outputs of more bytes would push each other out of the last cache before anybody reads them. What
// the system says of that cache is not asked: on virtual machines it is often not so.
constexpr size_t kStreamingBytes = size_t{16} << 20;

bool starts_line(const void* address) { return std::bit_cast<uintptr_t>(address) % 64 == 0; }
bool fills_lines(const OutputView& out, int64_t elements) {
  return static_cast<size_t>(elements) * compute::element_bytes(out.element) % 64 == 0;
}

}  // namespace

DirectLookup::DirectLookup(const Layout& layout) : layout_(layout) {
  const auto blocks = layout.blocks_of(layout.rank());
  const auto own_parts = layout.parts_of(layout.rank());
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Part& part = layout.parts()[static_cast<size_t>(blocks[b].part)];
    const TableLayout& table = layout.table(part.table);
    // A sequence is direct where all of its ids come here.
    bool direct = !blocks[b].sequence || table.whole;
    for (const Segment& segment : table.segments) {
      const bool adds =
          std::any_of(segment.addends.begin(), segment.addends.end(), [&](const Addend& addend) {
            return table.parts[static_cast<size_t>(addend.part)] == blocks[b].part;
          });
      direct = direct && (!adds || segment.addends.size() == 1);
    }
    direct_.push_back(direct ? 1 : 0);
    if (!direct) continue;
    const auto shard = std::find(own_parts.begin(), own_parts.end(), blocks[b].part);
    for (const ColumnPiece& columns : part.columns) {
      pieces_.push_back(
          {b, static_cast<size_t>(shard - own_parts.begin()), blocks[b].feature, columns});
    }
  }
  none_.resize(direct_.size());
  tasks_.reserve(pieces_.size());
}

void DirectLookup::compute(const RoutedBatch& routed, const Inbox& inbox,
                           std::span<const Shard> shards, int32_t output,
                           const StepContext& context, const OutputView& out, size_t bytes) {
  if (!open_) return;
  const auto& output_of = layout_.output().output;
  tasks_.clear();
  for (const Piece& piece : pieces_) {
    const int32_t feature = piece.feature;
    const bool wanted = output_of[static_cast<size_t>(feature)] == output;
    tasks_.add(wanted ? routed.chunks(feature) : int64_t{0});
  }
  streaming_ = bytes > kStreamingBytes && starts_line(out.data) && fills_lines(out, out.stride);
  context.threads.parallel_for(tasks_.count(), 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const auto place = tasks_.find(task);
      look_up(routed, inbox, shards, pieces_[place.group], place.task, context.kernels, out);
    }
  });
}

void DirectLookup::look_up(const RoutedBatch& routed, const Inbox& inbox,
                           std::span<const Shard> shards, const Piece& piece, int64_t chunk,
                           const compute::Kernels& kernels, const OutputView& out) const {
  const plan::Feature& feature = layout_.model().features[static_cast<size_t>(piece.feature)];
  const ReceivedBlock& block = inbox.blocks(layout_.rank())[piece.block];
  const SentBlock& sent = routed.blocks(layout_.rank())[piece.block];
  const Shard& shard = shards[piece.shard];
  const int64_t first = chunk * kChunk;
  const int64_t items = std::min(kChunk, routed.items(piece.feature) - first);
  const int64_t column =
      layout_.output().column[static_cast<size_t>(piece.feature)] + piece.columns.col;

  // First id of each bag, or each id of a sequence.
  std::array<int64_t, kChunk + 1> offsets;
  offsets[0] = sent.chunk_ids[chunk];
  if (layout_.is_sequence(piece.feature)) {
    std::iota(offsets.begin(), offsets.begin() + items + 1, offsets[0]);
  } else {
    const auto lengths = routed.lengths(piece.feature).subspan(static_cast<size_t>(first));
    for (size_t i = 0; i < static_cast<size_t>(items); ++i) {
      offsets[i + 1] = offsets[i] + lengths[i];
    }
  }
  const compute::PooledLookup job{
      .table = shard.weights() +
               static_cast<size_t>(piece.columns.offset) * compute::element_bytes(shard.element()),
      .element = shard.element(),
      .stride = static_cast<size_t>(shard.width()),
      .width = piece.columns.cols,
      .ids = block.id_data,
      .weights = block.weights,
      .offsets = offsets.data(),
      .out = out.at(first, column),
      .out_element = out.element,
      .out_stride = static_cast<size_t>(out.stride),
      .mean = feature.pooling == SHARDREC_POOLING_MEAN,
      .streaming =
          streaming_ && starts_line(out.at(first, column)) && fills_lines(out, piece.columns.cols)};
  kernels.pooled_lookup(job, 0, items);
}

}  // namespace shardrec::embedding
