#include "embedding/backward/gradient.h"

#include <algorithm>
#include <cstring>

#include "core/memory.h"

namespace shardrec::embedding {

GradientPacking::GradientPacking(const Layout& layout)
    : layout_(layout),
      headers_(static_cast<size_t>(layout.ranks())),
      messages_(headers_.size()),
      bodies_(headers_.size()),
      lent_(headers_.size()) {
  for (const std::span<const ColumnPiece> pieces : layout.column_cuts()) {
    auto& columns = columns_.emplace_back();
    for (const ColumnPiece& piece : pieces) {
      columns.push_back({piece.offset, piece.col, piece.cols});
    }
  }
}

// Are the gradients of a block what the caller gives, side by side, but for a division on the owner?
bool GradientPacking::may_lend(const Block& block) const {
  const Part& part = layout_.parts()[static_cast<size_t>(block.part)];
  const TableLayout& table = layout_.table(part.table);
  // Of a sequence, all ids must go there.
  return part.columns.size() == 1 && table.owner_applies_divisor &&
         divisors_.of(table).for_source(table) == 1 && (!block.sequence || table.whole);
}

void GradientPacking::lay_out(const RoutedBatch& routed, bool unscaled, const Divisors& divisors,
                              const Loan& loan, comm::MessageBuffer& buffer) {
  divisors_ = divisors;
  const auto lends_to = [&](int owner) {
    return loan.lends == Lends::kToProcess ||
           (loan.lends == Lends::kToItself && owner == layout_.rank());
  };
  size_t bytes = 0;
  size_t targets = 0;
  size_t bags = 0;  // of those that are packed
  size_t sequences = 0;
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const auto blocks = layout_.blocks_of(owner);
    const auto sent = routed.blocks(owner);
    bytes += sizeof(GradientHeader);
    lent_[static_cast<size_t>(owner)] = 0;
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (sent[b].rows == 0 || !layout_.updates(part_of(blocks[b]))) continue;
      ++targets;
      if (lends_to(owner)) ++lent_[static_cast<size_t>(owner)];
      if (lends_to(owner) && may_lend(blocks[b])) continue;
      ++(blocks[b].sequence ? sequences : bags);
      const size_t block_bytes =
          rows_bytes(sent[b].rows, layout_.parts()[static_cast<size_t>(blocks[b].part)].width);
      bytes += block_bytes * (unscaled && !blocks[b].sequence ? 2 : 1);
    }
  }
  std::byte* out = buffer.resize(bytes);
  if (loan.lends != Lends::kNothing) loan.lending->make_room(lent_);
  targets_.clear();
  core::reserve_with_slack(targets_, targets);
  core::reserve_with_slack(bags_, bags);
  core::reserve_with_slack(sequences_, sequences);
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
    const std::byte* body = out;
    const size_t first_target = targets_.size();
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (sent[b].rows == 0 || !layout_.updates(part_of(blocks[b]))) continue;
      const bool is_lent = !lent.empty() && may_lend(blocks[b]);
      targets_.push_back({.block = &sent[b],
                          .part = blocks[b].part,
                          .feature = blocks[b].feature,
                          .rows = static_cast<float*>(static_cast<void*>(out)),
                          .lent = is_lent ? &lent[targets_.size() - first_target] : nullptr});
      if (!is_lent) out += target_bytes(targets_.back());
    }
    for (size_t t = first_target; unscaled && t < targets_.size(); ++t) {
      Target& again = targets_[t];
      if (layout_.is_sequence(again.feature)) continue;
      again.unscaled = static_cast<float*>(static_cast<void*>(out));
      out += target_bytes(again);
    }
    messages_[static_cast<size_t>(owner)] = buffer.host(message, out);
    bodies_[static_cast<size_t>(owner)] = {body, out};
  }
}

size_t GradientPacking::target_bytes(const Target& target) const {
  return rows_bytes(target.block->rows, layout_.parts()[static_cast<size_t>(target.part)].width);
}

void GradientPacking::pack(const RoutedBatch& routed, const Expansion& expansion, int32_t output,
                           const OutputView& gradient, compute::Backend& backend) {
  bags_.clear();
  sequences_.clear();
  for (const Target& target : targets_) {
    const int32_t output_of = layout_.output().output[static_cast<size_t>(target.feature)];
    if (output_of != output) continue;
    if (target.lent != nullptr) {
      lend(target, gradient);
    } else if (output == 0) {
      bags_.push_back(bag_gradients(routed, expansion, target, gradient));
    } else {
      sequences_.push_back(sequence_gradients(routed, target, gradient));
    }
  }
  backend.gradients().pack_bag_gradients(bags_);
  backend.gradients().pack_sequence_gradients(sequences_);
}

void GradientPacking::lend(const Target& target, const OutputView& gradient) {
  const int64_t column = layout_.output().column[static_cast<size_t>(target.feature)] +
                         columns_of(target.part)[0].column;
  *target.lent = {static_cast<const float*>(gradient.column(column)), gradient.stride, true};
}

compute::BagGradients GradientPacking::bag_gradients(const RoutedBatch& routed,
                                                     const Expansion& expansion,
                                                     const Target& target,
                                                     const OutputView& gradient) const {
  const plan::Feature& feature = layout_.model().features[static_cast<size_t>(target.feature)];
  const bool mean = feature.pooling == SHARDREC_POOLING_MEAN;
  const auto part = static_cast<size_t>(target.part);
  return {.bags = target.block,
          .lengths = mean ? routed.lengths(target.feature).data() : nullptr,
          .samples = expansion.samples(target.feature),
          .gradient = gradient_of(target, gradient),
          .columns = columns_of(target.part),
          .width = layout_.parts()[part].width,
          .divisor = divisor_of(target),
          .max_gradient = max_gradient_of(target),
          .out = target.rows,
          .unscaled = target.unscaled};
}

compute::SequenceGradients GradientPacking::sequence_gradients(const RoutedBatch& routed,
                                                               const Target& target,
                                                               const OutputView& gradient) const {
  const Part& part = layout_.parts()[static_cast<size_t>(target.part)];
  const auto intervals = routed.intervals(target.feature);
  return {.ids = routed.ids(target.feature),
          .intervals = intervals.empty() ? nullptr : intervals.data(),
          .first_interval = part.first_interval,
          .end_interval = part.end_interval,
          .chunk_rows = target.block->chunk_rows,
          .gradient = gradient_of(target, gradient),
          .columns = columns_of(target.part),
          .width = part.width,
          .divisor = divisor_of(target),
          .max_gradient = max_gradient_of(target),
          .out = target.rows};
}

compute::OutputGradient GradientPacking::gradient_of(const Target& target,
                                                     const OutputView& gradient) const {
  const int64_t column = layout_.output().column[static_cast<size_t>(target.feature)];
  return {gradient.column(column), gradient.element, static_cast<size_t>(gradient.stride)};
}

float GradientPacking::divisor_of(const Target& target) const {
  const TableLayout& table = layout_.table(layout_.parts()[static_cast<size_t>(target.part)].table);
  return divisors_.of(table).for_source(table);
}

float GradientPacking::max_gradient_of(const Target& target) const {
  const int32_t table = layout_.parts()[static_cast<size_t>(target.part)].table;
  return static_cast<float>(layout_.model().optimizer_of(table).max_gradient);
}

void GradientPacking::publish(const comm::MessageBuffer& buffer) const {
  for (const comm::ConstBytes body : bodies_) {
    if (!body.empty()) buffer.publish(body.data(), body.data() + body.size());
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
