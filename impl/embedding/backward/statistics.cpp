#include "embedding/backward/statistics.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace shardrec::embedding {
namespace {

// Of the touched rows those inside [first_row, last_row) of the table, as positions.
std::pair<int64_t, int64_t> unique_between(std::span<const int64_t> rows, const Part& part,
                                           int64_t first_row, int64_t last_row) {
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

SharedStatistics::SharedStatistics(const Layout& layout, std::span<const Shard> shards,
                                   std::span<const int> values,
                                   const std::shared_ptr<compute::Memory>& memory)
    : layout_(layout),
      values_(values.begin(), values.end()),
      rows_(shards.size()),
      memory_(memory),
      own_sums_(shards.size()),
      totals_(shards.size()),
      messages_(static_cast<size_t>(layout.ranks())) {
  for (size_t p = 0; p < layout.parts().size(); ++p) {
    const bool any = values_[static_cast<size_t>(layout.parts()[p].table)] != 0;
    ranges_.emplace_back();
    if (any) ranges_.back() = shared_statistic_ranges(layout, static_cast<int32_t>(p));
    needed_ = needed_ || !ranges_.back().empty();
  }
  for (const Shard& shard : shards) {
    shared_.push_back(!ranges_[static_cast<size_t>(shard.part())].empty());
    neighbours_.emplace_back();
    if (!shared_.back()) continue;
    const Part& part = layout.parts()[static_cast<size_t>(shard.part())];
    for (const int32_t p : layout.table(part.table).parts) {
      const Part& other = layout.parts()[static_cast<size_t>(p)];
      const int64_t first = std::max(part.row, other.row);
      const int64_t last = std::min(part.row + part.rows, other.row + other.rows);
      if (p == shard.part() || first >= last) continue;
      arrivals_.push_back({other.owner, p, neighbours_.size() - 1, neighbours_.back().size()});
      neighbours_.back().push_back({p, first, last});
    }
  }
  std::sort(arrivals_.begin(), arrivals_.end(), [](const Arrival& a, const Arrival& b) {
    return std::tie(a.source, a.part, a.shard) < std::tie(b.source, b.part, b.shard);
  });
}

const Part& SharedStatistics::own_part(size_t shard) const {
  return layout_.parts()[static_cast<size_t>(layout_.parts_of(layout_.rank())[shard])];
}

std::span<const compute::ColumnRange> SharedStatistics::ranges(size_t shard) const {
  return ranges_[static_cast<size_t>(layout_.parts_of(layout_.rank())[shard])];
}

size_t SharedStatistics::floats_per_row(int32_t part) const {
  const auto p = static_cast<size_t>(part);
  return ranges_[p].size() *
         static_cast<size_t>(values_[static_cast<size_t>(layout_.parts()[p].table)]);
}

void SharedStatistics::prepare(std::span<const std::span<const int64_t>> rows) {
  size_t floats = 0;
  const auto for_each_shared = [&](auto visit) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!shared_[i]) continue;
      const auto values = static_cast<size_t>(values_[static_cast<size_t>(own_part(i).table)]);
      visit(i, rows[i].size() * values, rows[i].size() * values * ranges(i).size());
    }
  };
  for_each_shared([&](size_t, size_t totals, size_t sums) { floats += totals + sums; });
  float* at = memory_.resize_as<float>(floats).data();
  for_each_shared([&](size_t i, size_t totals, size_t sums) {
    rows_[i] = rows[i];
    totals_[i] = at;
    own_sums_[i] = at + totals;
    at += totals + sums;
  });
}

void SharedStatistics::pack(compute::Buffer& buffer) {
  // Two walks over the same pieces: sizes, then contents. A message holds, own shard after own
  // shard and neighbour after neighbour of its reader, the sums of the overlap.
  const auto for_each_piece = [&](int reader, auto visit) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!shared_[i]) continue;
      const size_t floats = floats_per_row(layout_.parts_of(layout_.rank())[i]);
      for (const Neighbour& neighbour : neighbours_[i]) {
        if (layout_.parts()[static_cast<size_t>(neighbour.part)].owner != reader) continue;
        const auto [first, last] =
            unique_between(rows_[i], own_part(i), neighbour.first_row, neighbour.last_row);
        visit(own_sums_[i] + static_cast<size_t>(first) * floats,
              static_cast<size_t>(last - first) * floats);
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

void SharedStatistics::add_up(std::span<const comm::ConstBytes> messages) {
  open(messages);
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (shared_[i]) add_shard(i);
  }
}

// Where in the messages the sums of each neighbour are.
void SharedStatistics::open(std::span<const comm::ConstBytes> messages) {
  size_t before = 0;  // floats of the source's message
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    const Arrival& arrival = arrivals_[i];
    if (i == 0 || arrivals_[i - 1].source != arrival.source) before = 0;
    Neighbour& neighbour = neighbours_[arrival.shard][arrival.neighbour];
    std::tie(neighbour.first_unique, neighbour.last_unique) = unique_between(
        rows_[arrival.shard], own_part(arrival.shard), neighbour.first_row, neighbour.last_row);
    const comm::ConstBytes message = messages[static_cast<size_t>(arrival.source)];
    const size_t count = static_cast<size_t>(neighbour.last_unique - neighbour.first_unique) *
                         floats_per_row(neighbour.part);
    if ((before + count) * sizeof(float) > message.size()) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", arrival.source, " sent row statistics that are cut off"),
                 {.rank = int64_t{arrival.source}, .operation = "backward"});
    }
    const auto* sums = static_cast<const float*>(static_cast<const void*>(message.data()));
    neighbour.sums = count == 0 ? nullptr : sums + before;
    before += count;
  }
}

void SharedStatistics::add_shard(size_t shard) {
  const Part& part = own_part(shard);
  const auto values = static_cast<size_t>(values_[static_cast<size_t>(part.table)]);
  adding_.clear();
  const auto add_ranges = [&](int32_t p, const float* sums, int64_t first, int64_t last) {
    if (first == last) return;  // sums are null
    const auto& ranges = ranges_[static_cast<size_t>(p)];
    for (size_t s = 0; s < ranges.size(); ++s) {
      adding_.push_back({column_at(layout_.parts()[static_cast<size_t>(p)], ranges[s].begin),
                         sums + s * values, floats_per_row(p), first, last});
    }
  };
  add_ranges(layout_.parts_of(layout_.rank())[shard], own_sums_[shard], 0,
             std::ssize(rows_[shard]));
  for (const Neighbour& neighbour : neighbours_[shard]) {
    add_ranges(neighbour.part, neighbour.sums, neighbour.first_unique, neighbour.last_unique);
  }
  std::sort(adding_.begin(), adding_.end(),
            [](const Range& a, const Range& b) { return a.col < b.col; });
  float* const totals = totals_[shard];
  std::fill_n(totals, rows_[shard].size() * values, 0.0F);
  for (const Range& range : adding_) {
    const auto unique = static_cast<size_t>(range.last_unique - range.first_unique);
    float* const to = totals + static_cast<size_t>(range.first_unique) * values;
    if (range.stride == values) {
      for (size_t i = 0; i < unique * values; ++i) to[i] += range.sums[i];
      continue;
    }
    for (size_t u = 0; u < unique; ++u) {
      for (size_t k = 0; k < values; ++k) {
        to[u * values + k] += range.sums[u * range.stride + k];
      }
    }
  }
}

}  // namespace shardrec::embedding
