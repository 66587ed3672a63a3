#include "embedding/backward/gradient.h"

#include <algorithm>
#include <cstring>

namespace shardrec::embedding {

GradientPacking::GradientPacking(const Layout& layout)
    : layout_(layout),
      headers_(static_cast<size_t>(layout.ranks())),
      messages_(headers_.size()),
      bodies_(headers_.size()) {
  for (int owner = 0; owner < layout.ranks(); ++owner) {
    for (const Block& block : layout.blocks_of(owner)) may_lend_.push_back(may_lend(block));
  }
  targets_.resize(may_lend_.size());
  bags_.reserve(may_lend_.size());
  sequences_.reserve(may_lend_.size());
  for (const Part& part : layout.parts()) {
    auto& columns = columns_.emplace_back();
    for (const ColumnPiece& piece : part.columns) {
      columns.push_back({piece.offset, piece.col, piece.cols});
    }
  }
}

// Are the gradients of a block what the caller gives, side by side, but for a late division?
bool GradientPacking::may_lend(const Block& block) const {
  const Part& part = layout_.parts()[static_cast<size_t>(block.part)];
  const TableLayout& table = layout_.table(part.table);
  // Of a sequence, all ids must go there.
  return part.columns.size() == 1 && table.owner_applies_divisor &&
         (!block.sequence || table.whole);
}

void GradientPacking::lay_out(const RoutedBatch& routed, bool unscaled, bool late, const Loan& loan,
                              comm::MessageBuffer& buffer) {
  owners_divide_ = late;
  const auto lends_to = [&](int owner) {
    return loan.lends == Lends::kToProcess ||
           (loan.lends == Lends::kToItself && owner == layout_.rank());
  };
  size_t bytes = 0;
  size_t target = 0;
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    bytes += sizeof(GradientHeader);
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
    const std::byte* message = out;
    headers_[static_cast<size_t>(owner)] = buffer.host(out);
    const GradientHeader header{.unscaled = unscaled ? 1U : 0U,
                                .lends = lends_to(owner) ? loan.lends : Lends::kNothing,
                                .lending = lends_to(owner) ? loan.number : 0};
    std::memcpy(buffer.host(out), &header, sizeof header);
    out += sizeof header;
    std::span<GradientRows> lent;
    if (lends_to(owner)) lent = loan.lending->blocks(owner);
    std::fill(lent.begin(), lent.end(), GradientRows{});
    const std::byte* body = out;
    const size_t first_target = target;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      const bool is_lent = !lent.empty() && may_lend_[target] != 0;
      targets_[target++] = {.block = &sent[b],
                            .part = blocks[b].part,
                            .feature = blocks[b].feature,
                            .rows = static_cast<float*>(static_cast<void*>(out)),
                            .lent = is_lent ? &lent[b] : nullptr};
      if (!is_lent) out += rows_bytes(sent[b].rows, part.width);
    }
    for (size_t b = 0; unscaled && b < blocks.size(); ++b) {
      if (blocks[b].sequence) continue;
      Target& again = targets_[first_target + b];
      again.unscaled = static_cast<float*>(static_cast<void*>(out));
      out += rows_bytes(sent[b].rows, layout_.parts()[static_cast<size_t>(blocks[b].part)].width);
    }
    messages_[static_cast<size_t>(owner)] = buffer.host(message, out);
    bodies_[static_cast<size_t>(owner)] = {body, out};
  }
}

void GradientPacking::pack(const RoutedBatch& routed, const Expansion& expansion, int32_t output,
                           const OutputView& gradient, float divisor, compute::Backend& backend) {
  bags_.clear();
  sequences_.clear();
  for (const Target& target : targets_) {
    const int32_t output_of = layout_.output().output[static_cast<size_t>(target.feature)];
    if (target.block->rows == 0 || output_of != output) continue;
    if (target.lent != nullptr) {
      lend(target, gradient);
    } else if (output == 0) {
      bags_.push_back(bag_gradients(routed, expansion, target, gradient, divisor));
    } else {
      sequences_.push_back(sequence_gradients(routed, target, gradient, divisor));
    }
  }
  backend.gradients().pack_bag_gradients(bags_);
  backend.gradients().pack_sequence_gradients(sequences_);
}

void GradientPacking::lend(const Target& target, const OutputView& gradient) {
  const int64_t column = layout_.output().column[static_cast<size_t>(target.feature)] +
                         columns_[static_cast<size_t>(target.part)][0].column;
  *target.lent = {static_cast<const float*>(gradient.column(column)), gradient.stride, true};
}

compute::BagGradients GradientPacking::bag_gradients(const RoutedBatch& routed,
                                                     const Expansion& expansion,
                                                     const Target& target,
                                                     const OutputView& gradient,
                                                     float divisor) const {
  const plan::Feature& feature = layout_.model().features[static_cast<size_t>(target.feature)];
  const bool mean = feature.pooling == SHARDREC_POOLING_MEAN;
  const auto part = static_cast<size_t>(target.part);
  return {.bags = target.block,
          .lengths = mean ? routed.lengths(target.feature).data() : nullptr,
          .samples = expansion.samples(target.feature),
          .gradient = gradient_of(target, gradient),
          .columns = columns_[part],
          .width = layout_.parts()[part].width,
          .divisor = divisor_of(target, divisor),
          .max_gradient = max_gradient_of(target),
          .out = target.rows,
          .unscaled = target.unscaled};
}

compute::SequenceGradients GradientPacking::sequence_gradients(const RoutedBatch& routed,
                                                               const Target& target,
                                                               const OutputView& gradient,
                                                               float divisor) const {
  const Part& part = layout_.parts()[static_cast<size_t>(target.part)];
  const auto intervals = routed.intervals(target.feature);
  return {.ids = routed.ids(target.feature),
          .intervals = intervals.empty() ? nullptr : intervals.data(),
          .first_interval = part.first_interval,
          .end_interval = part.end_interval,
          .chunk_rows = target.block->chunk_rows,
          .gradient = gradient_of(target, gradient),
          .columns = columns_[static_cast<size_t>(target.part)],
          .width = part.width,
          .divisor = divisor_of(target, divisor),
          .max_gradient = max_gradient_of(target),
          .out = target.rows};
}

compute::OutputGradient GradientPacking::gradient_of(const Target& target,
                                                     const OutputView& gradient) const {
  const int64_t column = layout_.output().column[static_cast<size_t>(target.feature)];
  return {gradient.column(column), gradient.element, static_cast<size_t>(gradient.stride)};
}

float GradientPacking::divisor_of(const Target& target, float divisor) const {
  const int32_t table = layout_.parts()[static_cast<size_t>(target.part)].table;
  return owners_divide_ && layout_.table(table).owner_applies_divisor ? 1 : divisor;
}

float GradientPacking::max_gradient_of(const Target& target) const {
  const int32_t table = layout_.parts()[static_cast<size_t>(target.part)].table;
  return static_cast<float>(layout_.model().optimizer_of(table).max_gradient);
}

void GradientPacking::publish(const comm::MessageBuffer& buffer) const {
  for (const comm::ConstBytes body : bodies_) {
    buffer.publish(body.data(), body.data() + body.size());
  }
}

void GradientPacking::decline(GradientVerdict decision, const Verdict& verdict,
                              comm::MessageBuffer& buffer) {
  GradientHeader header;
  header.decision = decision;
  header.verdict = verdict;
  std::byte* out = buffer.host(buffer.resize(sizeof header));
  std::memcpy(out, &header, sizeof header);
  std::fill(headers_.begin(), headers_.end(), out);
  std::fill(messages_.begin(), messages_.end(), comm::ConstBytes{out, sizeof header});
  std::fill(bodies_.begin(), bodies_.end(), comm::ConstBytes{});
}

void GradientPacking::seal(bool accumulate, uint64_t settings) {
  for (std::byte* at : headers_) {
    GradientHeader header;
    std::memcpy(&header, at, sizeof header);
    header.accumulate = accumulate ? 1 : 0;
    header.settings = settings;
    std::memcpy(at, &header, sizeof header);
  }
}

}  // namespace shardrec::embedding
