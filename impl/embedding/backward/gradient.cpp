#include "embedding/backward/gradient.h"

#include <algorithm>
#include <cstring>

namespace shardrec::embedding {
namespace {

// out = sum of the gradients of some samples, columns [column, column + columns).
void add_samples(std::span<const uint32_t> samples, const OutputView& gradient, int64_t column,
                 float* out, int64_t columns, const compute::Kernels& kernels) {
  if (samples.empty()) {
    std::fill(out, out + columns, 0.0F);
    return;
  }
  kernels.widen(gradient.at(samples[0], column), gradient.element, out, columns);
  for (const uint32_t sample : samples.subspan(1)) {
    constexpr int64_t kPiece = 256;
    float piece[kPiece];
    for (int64_t c = 0; c < columns; c += kPiece) {
      const int64_t count = std::min(kPiece, columns - c);
      kernels.widen(gradient.at(sample, column + c), gradient.element, piece, count);
      kernels.add(piece, out + c, count);
    }
  }
}

}  // namespace

GradientPacking::GradientPacking(const Layout& layout)
    : layout_(layout), messages_(static_cast<size_t>(layout.ranks())) {
  for (int owner = 0; owner < layout.ranks(); ++owner) {
    for (const Block& block : layout.blocks_of(owner)) may_lend_.push_back(may_lend(block));
  }
  targets_.resize(may_lend_.size());
  tasks_.reserve(may_lend_.size());
}

// Are the gradients of a block what the caller gives, side by side, but for a late division?
bool GradientPacking::may_lend(const Block& block) const {
  const Part& part = layout_.parts()[static_cast<size_t>(block.part)];
  const TableLayout& table = layout_.table(part.table);
  // Of a sequence, all ids must go there.
  return part.columns.size() == 1 && table.owner_applies_divisor &&
         (!block.sequence || table.whole);
}

void GradientPacking::lay_out(const RoutedBatch& routed, bool unscaled, bool late, bool lends,
                              Lending* lending, core::Scratch& buffer) {
  owners_divide_ = late;
  const auto lends_to = [&](int owner) {
    return lends && (lending != nullptr || owner == layout_.rank());
  };
  size_t bytes = 0;
  size_t target = 0;
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    bytes += sizeof(GradientHeader);
    if (lends_to(owner)) bytes += lent_bytes(blocks.size());
    for (size_t b = 0; b < blocks.size(); ++b, ++target) {
      if (lends_to(owner) && may_lend_[target] != 0) continue;
      const size_t block_bytes =
          rows_bytes(sent[b].rows, layout_.parts()[static_cast<size_t>(blocks[b].part)].width);
      bytes += block_bytes * (unscaled && !blocks[b].sequence ? 2 : 1);
    }
  }
  std::byte* out = buffer.resize(bytes);
  target = 0;
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    std::byte* message = out;
    const GradientHeader header{.unscaled = unscaled ? 1U : 0U,
                                .lends = lends_to(owner) ? 1U : 0U,
                                .lending = lends_to(owner) ? lending : nullptr};
    std::memcpy(out, &header, sizeof header);
    out += sizeof header;
    GradientRows* lent = nullptr;
    if (lends_to(owner)) {
      lent = static_cast<GradientRows*>(static_cast<void*>(out));
      std::fill_n(lent, blocks.size(), GradientRows{});
      out += lent_bytes(blocks.size());
    }
    const size_t first_target = target;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      const bool is_lent = lent != nullptr && may_lend_[target] != 0;
      targets_[target++] = {.block = &sent[b],
                            .part = &part,
                            .feature = blocks[b].feature,
                            .rows = static_cast<float*>(static_cast<void*>(out)),
                            .lent = is_lent ? lent + b : nullptr};
      if (!is_lent) out += rows_bytes(sent[b].rows, part.width);
    }
    for (size_t b = 0; unscaled && b < blocks.size(); ++b) {
      if (blocks[b].sequence) continue;
      Target& again = targets_[first_target + b];
      again.unscaled = static_cast<float*>(static_cast<void*>(out));
      out += rows_bytes(sent[b].rows, again.part->width);
    }
    messages_[static_cast<size_t>(owner)] = {message, out};
  }
}

void GradientPacking::pack(const RoutedBatch& routed, const Expansion& expansion, int32_t output,
                           const OutputView& gradient, float divisor, const StepContext& context) {
  const auto& output_of = layout_.output().output;
  tasks_.clear();
  for (size_t t = 0; t < targets_.size(); ++t) {
    const int32_t feature = targets_[t].feature;
    bool wanted = targets_[t].block->rows != 0 && output_of[static_cast<size_t>(feature)] == output;
    if (wanted && targets_[t].lent != nullptr) {
      const int64_t column =
          layout_.output().column[static_cast<size_t>(feature)] + targets_[t].part->columns[0].col;
      *targets_[t].lent = {static_cast<const float*>(gradient.at(0, column)), gradient.stride,
                           true};
      wanted = false;
    }
    tasks_.add(wanted ? routed.chunks(feature) : int64_t{0});
  }
  context.threads.parallel_for(tasks_.count(), 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      const auto [t, chunk] = tasks_.find(task);
      const int32_t table = targets_[t].part->table;
      const compute::ScaleGradient scale{
          .divisor = owner_divides(table) ? 1 : divisor,
          .max_gradient = static_cast<float>(layout_.model().optimizer_of(table).max_gradient),
          .element = gradient.element};
      if (output == 0) {
        pack_bags(routed, expansion, targets_[t], chunk, gradient, scale, context.kernels);
      } else {
        pack_sequence(routed, targets_[t], chunk, gradient, scale, context.kernels);
      }
    }
  });
}

void GradientPacking::pack_bags(const RoutedBatch& routed, const Expansion& expansion,
                                const Target& target, int64_t chunk, const OutputView& gradient,
                                compute::ScaleGradient scale,
                                const compute::Kernels& kernels) const {
  const plan::Feature& feature = layout_.model().features[static_cast<size_t>(target.feature)];
  const bool mean = feature.pooling == SHARDREC_POOLING_MEAN;
  const auto lengths = routed.lengths(target.feature);
  const int64_t column = layout_.output().column[static_cast<size_t>(target.feature)];
  int64_t row = target.block->chunk_rows[chunk];
  const int64_t row_end = target.block->chunk_rows[chunk + 1];
  if (expansion.present()) scale.element = compute::Element::kFloat32;  // of the sums
  for (int64_t bag = chunk * kChunk; row < row_end; ++bag) {
    if (!target.block->holds(row, bag)) continue;
    if (mean) scale.length = static_cast<float>(lengths[static_cast<size_t>(bag)]);
    float* to = target.rows + row * target.part->width;
    for (const ColumnPiece& piece : target.part->columns) {
      float* out = to + piece.offset;
      const void* given = out;
      if (expansion.present()) {
        add_samples(expansion.samples(target.feature).of(bag), gradient, column + piece.col, out,
                    piece.cols, kernels);
      } else {
        given = gradient.at(bag, column + piece.col);
      }
      if (target.unscaled != nullptr) {
        const compute::ScaleGradient only_mean{.length = scale.length, .element = scale.element};
        kernels.scale_gradient(only_mean, given,
                               target.unscaled + row * target.part->width + piece.offset,
                               piece.cols);
      }
      kernels.scale_gradient(scale, given, out, piece.cols);
    }
    ++row;
  }
}

void GradientPacking::pack_sequence(const RoutedBatch& routed, const Target& target, int64_t chunk,
                                    const OutputView& gradient, const compute::ScaleGradient& scale,
                                    const compute::Kernels& kernels) const {
  const auto intervals = routed.intervals(target.feature);
  const Part& part = *target.part;
  float* to = target.rows + int64_t{target.block->chunk_rows[chunk]} * part.width;
  const int64_t last = std::min((chunk + 1) * kChunk, routed.items(target.feature));
  for (int64_t id = chunk * kChunk; id < last; ++id) {
    const int32_t interval = intervals.empty() ? 0 : intervals[static_cast<size_t>(id)];
    if (interval < part.first_interval || interval >= part.end_interval) continue;
    for (const ColumnPiece& piece : part.columns) {
      kernels.scale_gradient(scale, gradient.at(id, piece.col), to + piece.offset, piece.cols);
    }
    to += part.width;
  }
}

void GradientPacking::decline(GradientVerdict decision, const Verdict& verdict,
                              core::Scratch& buffer) {
  GradientHeader header;
  header.decision = decision;
  header.verdict = verdict;
  std::byte* out = buffer.resize(sizeof header);
  std::memcpy(out, &header, sizeof header);
  std::fill(messages_.begin(), messages_.end(), comm::ConstBytes{out, sizeof header});
}

void GradientPacking::seal(bool accumulate, uint64_t settings, core::Scratch& buffer) {
  for (const comm::ConstBytes message : messages_) {
    std::byte* at = buffer.data() + (message.data() - buffer.data());
    GradientHeader header;
    std::memcpy(&header, at, sizeof header);
    header.accumulate = accumulate ? 1 : 0;
    header.settings = settings;
    std::memcpy(at, &header, sizeof header);
  }
}

}  // namespace shardrec::embedding
