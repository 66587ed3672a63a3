#include "compute/cpu/routing/routing.h"

#include <algorithm>

#include "compute/cpu/routing/routing_ids.h"
#include "compute/cpu/tasks/shares.h"

namespace shardrec::compute::cpu {
namespace {

// Ids of one piece.
constexpr int64_t kPieceIds = int64_t{1} << 15;

CheckedIds count_feature(const RoutedIds& feature, const BlockCounts& counts) {
  if (feature.intervals == nullptr) return count_whole(feature, counts.counts);
  return is_streams(feature) ? count_streams(feature, counts.counts) : count_cut(feature, counts);
}

void write_feature(const RoutedIds& feature, int64_t out_of_range, const WrittenBlocks& blocks,
                   std::span<WriteCursor> cursors) {
  if (feature.intervals == nullptr) {
    return write_whole(feature, !writes_in_pieces(feature), out_of_range, blocks);
  }
  is_streams(feature) ? write_streams(feature, blocks) : write_cut(feature, blocks, cursors);
}

bool is_cut(const RoutedIds& feature) {
  return feature.intervals != nullptr && !is_streams(feature);
}

// Looks at the ids that were not checked one by one.
void find_wrong(std::span<const RoutedIds> features, std::span<CheckedIds> checked) {
  for (size_t f = 0; f < features.size(); ++f) {
    if (writes_in_pieces(features[f])) checked[f].wrong = first_wrong(features[f]);
  }
}

}  // namespace

WrongInteger first_wrong(const RoutedIds& feature) {
  return with_ids(feature, [&](const auto* ids) -> WrongInteger {
    for (int64_t i = 0; i < feature.count; ++i) {
      if (!in_range(ids[i], feature.rows)) return {.position = feature.first + i, .value = ids[i]};
    }
    return {};
  });
}

void IdRouting::count(std::span<const RoutedIds> features, std::span<CheckedIds> checked,
                      std::span<BlockCount> counts, const Context& context) {
  std::ranges::fill(counts, BlockCount{});
  if (std::ranges::any_of(features, is_cut)) last_bags_.assign(counts.size(), 0);
  for_each_task(features.size(), context,
                [&](size_t f) { checked[f] = count_feature(features[f], {counts, last_bags_}); });
  // What else there is comes out now too, for it may stand before.
  if (std::ranges::any_of(checked, [](const CheckedIds& c) { return c.wrong.position >= 0; })) {
    find_wrong(features, checked);
  }
}

void IdRouting::cut_pieces(std::span<const RoutedIds> features) {
  size_t most = 0;
  for (const RoutedIds& feature : features) {
    most += 2 + static_cast<size_t>(feature.count / kPieceIds);
  }
  pieces_.clear();
  core::reserve_with_slack(pieces_, most);
  for (size_t f = 0; f < features.size(); ++f) {
    pieces_.push_back({.feature = f});
    if (!writes_in_pieces(features[f])) continue;
    for (int64_t first = 0; first < features[f].count; first += kPieceIds) {
      pieces_.push_back(
          {.feature = f, .first = first, .last = std::min(first + kPieceIds, features[f].count)});
    }
  }
}

void IdRouting::write(std::span<const RoutedIds> features, const WrittenBlocks& blocks,
                      std::span<CheckedIds> checked, const Context& context) {
  cursors_.clear();
  if (std::ranges::any_of(features, is_cut)) {
    core::reserve_with_slack(cursors_, blocks.sections().size());
    cursors_.resize(blocks.sections().size());
  }
  cut_pieces(features);
  for_each_task(pieces_.size(), context, [&](size_t p) {
    Piece& piece = pieces_[p];
    const RoutedIds& feature = features[piece.feature];
    if (piece.last == 0) {
      write_feature(feature, checked[piece.feature].out_of_range, blocks, cursors_);
    } else {
      piece.good = narrow_ids(feature, piece.first, piece.last, blocks, context.kernels);
    }
  });
  if (!std::ranges::all_of(pieces_, &Piece::good)) find_wrong(features, checked);
}

}  // namespace shardrec::compute::cpu
