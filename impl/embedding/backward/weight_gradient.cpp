#include "embedding/backward/weight_gradient.h"

#include <algorithm>
#include <cstring>

#include "core/memory.h"

namespace shardrec::embedding {
namespace {

size_t products_bytes(int64_t ids, size_t ranges) {
  return align_up(static_cast<size_t>(ids) * ranges * sizeof(float), 64);
}

// Where the rows of a message begin that the products are taken with.
struct ProductRows {
  const std::byte* rows = nullptr;
  bool of_sequences = true;  // has rows of sequences too
};

// Those of the step, or, where the message has others behind them, those.
ProductRows product_rows(comm::ConstBytes message, comm::ConstBytes body, const Layout& layout,
                         const BlocksOfMessage<ReceivedBlock>& received) {
  GradientHeader header;
  std::memcpy(&header, message.data(), sizeof header);
  const std::byte* rows = body.data();
  if (header.unscaled == 0) return {rows, true};
  const auto blocks = layout.blocks_of(layout.rank());
  for (size_t b = 0; b < blocks.size(); ++b) {
    const Part& part = layout.parts()[static_cast<size_t>(blocks[b].part)];
    if (layout.updates(part)) rows += rows_bytes(received[b].rows, part.width);
  }
  return {rows, false};
}

}  // namespace

WeightProducts::WeightProducts(const Layout& layout)
    : layout_(layout),
      shard_of_block_(shards_of_blocks(layout)),
      messages_(static_cast<size_t>(layout.ranks())) {
  for (const Block& block : layout.blocks_of(layout.rank())) {
    ranges_.push_back(adjacent_columns(layout.parts()[static_cast<size_t>(block.part)]));
  }
}

void WeightProducts::compute(const Inbox& inbox, std::span<const comm::ConstBytes> messages,
                             std::span<const comm::ConstBytes> bodies,
                             std::span<const Shard> shards, compute::Backend& backend,
                             comm::MessageBuffer& buffer) {
  const auto blocks = layout_.blocks_of(layout_.rank());
  const auto part_of = [&](size_t b) -> const Part& {
    return layout_.parts()[static_cast<size_t>(blocks[b].part)];
  };
  const auto answered = [&](size_t b, int source) {
    return !blocks[b].sequence && layout_.answers_products(part_of(b), source);
  };
  size_t bytes = 0;
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (answered(b, source)) bytes += products_bytes(received[b].ids, ranges_[b].size());
    }
  }
  std::byte* const begin = buffer.resize(bytes);
  std::byte* out = begin;
  products_.clear();
  core::reserve_with_slack(products_, inbox.blocks_with_ids());
  for (int source = 0; source < layout_.ranks(); ++source) {
    const auto received = inbox.blocks(source);
    auto [rows, of_sequences] =
        product_rows(messages[static_cast<size_t>(source)], bodies[static_cast<size_t>(source)],
                     layout_, received);
    std::byte* message = out;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const ReceivedBlock& block = received[b];
      if (answered(b, source) && block.ids != 0) {
        products_.push_back({.table = shards[shard_of_block_[b]].table_rows(),
                             .ids = block.id_data,
                             .bags = &block,
                             .ranges = ranges_[b],
                             .gradients = static_cast<const float*>(static_cast<const void*>(rows)),
                             .out = static_cast<float*>(static_cast<void*>(out))});
        out += products_bytes(block.ids, ranges_[b].size());
      }
      if (!layout_.updates(part_of(b))) continue;
      if (of_sequences || !blocks[b].sequence) rows += rows_bytes(block.rows, part_of(b).width);
    }
    messages_[static_cast<size_t>(source)] = buffer.host(message, out);
  }
  backend.gradients().take_weight_products(products_);
  buffer.publish(begin, out);
}

WeightGradients::WeightGradients(const Layout& layout) : layout_(layout) {
  for (const Part& part : layout.parts()) range_counts_.push_back(adjacent_columns(part).size());
  for (size_t t = 0; t < layout.table_count(); ++t) {
    terms_.push_back(terms_of(static_cast<int32_t>(t)));
  }
  size_t sources = 0;
  for (const plan::Feature& feature : layout.model().features) {
    first_source_.push_back(sources);
    sources += layout.updated(feature.table).size();
  }
  sources_.resize(sources);
  features_.reserve(first_source_.size());
}

WeightGradients::TableTerms WeightGradients::terms_of(int32_t number) const {
  // A product of a part that has rows of an interval.
  struct Term {
    compute::ProductTerm product;
    int64_t col = 0;
  };
  const TableLayout& table = layout_.table(number);
  std::vector<std::vector<Term>> by_interval(table.routing.intervals());
  const PartRange parts = layout_.updated(number);
  for (size_t k = 0; k < parts.size(); ++k) {
    const Part& part = layout_.parts()[static_cast<size_t>(parts[k])];
    const std::vector<compute::ColumnRange> ranges = adjacent_columns(part);
    for (size_t r = 0; r < ranges.size(); ++r) {
      const auto piece =
          std::find_if(part.columns.begin(), part.columns.end(),
                       [&](const ColumnPiece& p) { return p.offset == ranges[r].begin; });
      for (int32_t i = part.first_interval; i < part.end_interval; ++i) {
        by_interval[static_cast<size_t>(i)].push_back(
            {{static_cast<int32_t>(k), static_cast<int32_t>(r)}, piece->col});
      }
    }
  }
  TableTerms out{.terms = {}, .first = {0}};
  for (std::vector<Term>& of_interval : by_interval) {
    std::sort(of_interval.begin(), of_interval.end(),
              [](const Term& a, const Term& b) { return a.col < b.col; });
    for (const Term& term : of_interval) out.terms.push_back(term.product);
    out.first.push_back(static_cast<int32_t>(out.terms.size()));
  }
  return out;
}

void WeightGradients::assemble(const RoutedBatch& routed, const CheckedBatch& batch,
                               std::span<const comm::ConstBytes> bodies, compute::Backend& backend,
                               float* out) {
  for (int owner = 0; owner < layout_.ranks(); ++owner) {
    const comm::ConstBytes message = bodies[static_cast<size_t>(owner)];
    const auto blocks = layout_.blocks_of(owner);
    size_t at = 0;
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Part& part = layout_.parts()[static_cast<size_t>(blocks[b].part)];
      if (blocks[b].sequence || !layout_.answers_products(part, layout_.rank())) continue;
      const size_t k = layout_.updated(part.table).index_of(blocks[b].part);
      const size_t ranges = range_counts_[static_cast<size_t>(blocks[b].part)];
      sources_[first_source_[static_cast<size_t>(blocks[b].feature)] + k] = {
          static_cast<const float*>(static_cast<const void*>(message.data() + at)),
          static_cast<int64_t>(ranges)};
      at += products_bytes(routed.blocks(owner)[b].ids, ranges);
    }
    if (at != message.size()) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", owner, " sent gradients of weights of ", message.size(),
                                " bytes, ", at, " were expected"),
                 {.rank = int64_t{owner}, .operation = "backward"});
    }
  }
  features_.clear();
  for (size_t f = 0; f < first_source_.size(); ++f) {
    const auto feature = static_cast<int32_t>(f);
    const int32_t table = layout_.model().features[f].table;
    const TableTerms& terms = terms_[static_cast<size_t>(table)];
    const auto intervals = routed.intervals(feature);
    compute::WeightGradients& gradients = features_.emplace_back();
    gradients.ids = routed.ids(feature);
    gradients.out = out + batch.first_id(feature);
    if (layout_.is_sequence(feature)) continue;
    gradients.intervals = intervals.empty() ? nullptr : intervals.data();
    gradients.parts = {sources_.data() + first_source_[f], layout_.updated(table).size()};
    gradients.terms = terms.terms;
    gradients.first_term = terms.first;
  }
  backend.gradients().sum_weight_products(features_);
}

}  // namespace shardrec::embedding
