#include "embedding/statistics.h"

#include <algorithm>
#include <cstring>

namespace shardrec::embedding {
namespace {

// Unique rows of the plan inside [first_row, last_row) of the table, as positions.
std::pair<int64_t, int64_t> unique_between(const IndexPlan& plan, const Part& part,
                                           int64_t first_row, int64_t last_row) {
  const auto rows = plan.rows();
  const auto first = std::lower_bound(rows.begin(), rows.end(), first_row - part.row);
  const auto last = std::lower_bound(first, rows.end(), last_row - part.row);
  return {first - rows.begin(), last - rows.begin()};
}

// Column of the table at an offset of the part's row.
int64_t column_at(const Part& part, int64_t offset) {
  for (const ColumnPiece& piece : part.columns) {
    if (offset < piece.offset + piece.cols) return piece.col + offset - piece.offset;
  }
  return part.width;
}

}  // namespace

SharedStatistics::SharedStatistics(const Layout& layout, std::span<const Shard> shards)
    : layout_(layout), messages_(static_cast<size_t>(layout.ranks())) {
  for (size_t p = 0; p < layout.parts().size(); ++p) {
    ranges_.push_back(shared_statistic_ranges(layout, static_cast<int32_t>(p)));
    needed_ = needed_ || !ranges_.back().empty();
  }
  for (const Shard& shard : shards) {
    shared_.push_back(shard.statistic_is_shared());
    neighbours_.emplace_back();
    if (!shard.statistic_is_shared()) continue;
    const Part& part = layout.parts()[static_cast<size_t>(shard.part())];
    for (const int32_t p : layout.table(part.table).parts) {
      const Part& other = layout.parts()[static_cast<size_t>(p)];
      const int64_t first = std::max(part.row, other.row);
      const int64_t last = std::min(part.row + part.rows, other.row + other.rows);
      if (p != shard.part() && first < last) neighbours_.back().push_back({p, first, last});
    }
  }
}

void SharedStatistics::pack(std::span<const IndexPlan> plans, std::span<float* const> own_sums,
                            core::Scratch& buffer) {
  // Two walks over the same pieces: sizes, then contents. A message holds, own shard after own
  // shard and neighbour after neighbour of its reader, the sums of the overlap.
  const auto for_each_piece = [&](int reader, auto visit) {
    for (size_t i = 0; i < plans.size(); ++i) {
      if (!shared_[i]) continue;
      const int32_t p = layout_.parts_of(layout_.rank())[i];
      const Part& part = layout_.parts()[static_cast<size_t>(p)];
      const size_t ranges = ranges_[static_cast<size_t>(p)].size();
      for (const Neighbour& neighbour : neighbours_[i]) {
        if (layout_.parts()[static_cast<size_t>(neighbour.part)].owner != reader) continue;
        const auto [first, last] =
            unique_between(plans[i], part, neighbour.first_row, neighbour.last_row);
        visit(own_sums[i] + static_cast<size_t>(first) * ranges,
              static_cast<size_t>(last - first) * ranges);
      }
    }
  };
  size_t floats = 0;
  for (int reader = 0; reader < layout_.ranks(); ++reader) {
    for_each_piece(reader, [&](const float*, size_t count) { floats += count; });
  }
  float* out = buffer.resize_as<float>(floats).data();
  for (int reader = 0; reader < layout_.ranks(); ++reader) {
    const float* message = out;
    for_each_piece(reader, [&](const float* sums, size_t count) {
      if (count != 0) std::memcpy(out, sums, count * sizeof(float));
      out += count;
    });
    messages_[static_cast<size_t>(reader)] = std::as_bytes(std::span(message, out));
  }
}

void SharedStatistics::add_up(std::span<const IndexPlan> plans, std::span<float* const> own_sums,
                              std::span<const comm::ConstBytes> messages,
                              std::span<float* const> totals) {
  const auto own_parts = layout_.parts_of(layout_.rank());
  for (size_t i = 0; i < plans.size(); ++i) {
    if (!shared_[i]) continue;
    const Part& part = layout_.parts()[static_cast<size_t>(own_parts[i])];
    adding_.clear();
    const auto add_ranges = [&](int32_t p, const float* sums, int64_t first, int64_t last) {
      if (first == last) return;  // sums may be null
      const auto& ranges = ranges_[static_cast<size_t>(p)];
      for (size_t s = 0; s < ranges.size(); ++s) {
        adding_.push_back({column_at(layout_.parts()[static_cast<size_t>(p)], ranges[s].begin),
                           sums + s, static_cast<int64_t>(ranges.size()), first, last});
      }
    };
    add_ranges(own_parts[i], own_sums[i], 0, plans[i].unique());
    for (const Neighbour& neighbour : neighbours_[i]) {
      const int source = layout_.parts()[static_cast<size_t>(neighbour.part)].owner;
      const auto [first, last] =
          unique_between(plans[i], part, neighbour.first_row, neighbour.last_row);
      // Everything of the source's message before this piece: its earlier shards, for all of mine,
      // and this shard, for my earlier ones.
      size_t before = 0;
      for (const int32_t p : layout_.parts_of(source)) {
        if (p > neighbour.part) break;
        for (size_t j = 0; j < plans.size(); ++j) {
          if (p == neighbour.part && j >= i) break;
          for (const Neighbour& other : neighbours_[j]) {
            if (other.part != p) continue;
            const Part& mine = layout_.parts()[static_cast<size_t>(own_parts[j])];
            const auto [a, b] = unique_between(plans[j], mine, other.first_row, other.last_row);
            before += static_cast<size_t>(b - a) * ranges_[static_cast<size_t>(p)].size();
          }
        }
      }
      const size_t count =
          static_cast<size_t>(last - first) * ranges_[static_cast<size_t>(neighbour.part)].size();
      const comm::ConstBytes message = messages[static_cast<size_t>(source)];
      if ((before + count) * sizeof(float) > message.size()) {
        core::fail(SHARDREC_CORRUPT_DATA,
                   core::sentence("rank ", source, " sent row statistics that are cut off"),
                   {.rank = int64_t{source}, .operation = "backward"});
      }
      const auto* sums = static_cast<const float*>(static_cast<const void*>(message.data()));
      add_ranges(neighbour.part, sums + before, first, last);
    }
    std::sort(adding_.begin(), adding_.end(),
              [](const Range& a, const Range& b) { return a.col < b.col; });
    float* total = totals[i];
    for (int64_t u = 0; u < plans[i].unique(); ++u) {
      float sum = 0;
      for (const Range& range : adding_) {
        if (range.first_unique <= u && u < range.last_unique) {
          sum += range.sums[(u - range.first_unique) * range.stride];
        }
      }
      total[u] = sum;
    }
  }
}

}  // namespace shardrec::embedding
