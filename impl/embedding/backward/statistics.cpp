#include "embedding/backward/statistics.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace shardrec::embedding {
namespace {

// Column of the table at an offset of the part's row.
int64_t column_at(const Part& part, int64_t offset) {
  for (const ColumnPiece& piece : part.columns) {
    if (offset < piece.offset + piece.cols) return piece.col + offset - piece.offset;
  }
  return part.width;
}

}  // namespace

SharedStatistics::SharedStatistics(const Layout& layout, std::span<const Shard> shards,
                                   std::span<const int> values, comm::BodyCarrier& bodies)
    : layout_(layout),
      backend_(bodies.backend()),
      values_(values.begin(), values.end()),
      rows_(shards.size()),
      memory_(bodies.backend().memory()),
      own_sums_(shards.size()),
      totals_(shards.size()),
      messages_(static_cast<size_t>(layout.ranks())),
      received_(bodies.make_received()) {
  for (size_t p = 0; p < layout.parts().size(); ++p) {
    if (values_[static_cast<size_t>(layout.parts()[p].table)] == 0) continue;
    const auto part = static_cast<int32_t>(p);
    auto ranges = shared_statistic_ranges(layout, part);
    if (!ranges.empty()) ranges_.emplace(part, std::move(ranges));
  }
  needed_ = !ranges_.empty();
  size_t most_addends = 0;
  for (const Shard& shard : shards) {
    shared_.push_back(!ranges_of(shard.part()).empty());
    neighbours_.emplace_back();
    if (!shared_.back()) continue;
    const Part& part = layout.parts()[static_cast<size_t>(shard.part())];
    for (const int32_t p : layout.updated(part.table)) {
      const Part& other = layout.parts()[static_cast<size_t>(p)];
      const int64_t first = std::max(part.row, other.row);
      const int64_t last = std::min(part.row + part.rows, other.row + other.rows);
      if (p == shard.part() || first >= last) continue;
      arrivals_.push_back({other.owner, p, neighbours_.size() - 1, neighbours_.back().size()});
      neighbours_.back().push_back({.part = p});
      bounds_.push_back(first - part.row);
      bounds_.push_back(last - part.row);
      most_addends += ranges_of(p).size();
    }
    most_addends += ranges_of(shard.part()).size();
  }
  before_.resize(bounds_.size());
  addends_.reserve(most_addends);
  ranges_of_shard_.reserve(most_addends);
  searches_.reserve(shards.size());
  sums_of_shards_.reserve(shards.size());
  std::sort(arrivals_.begin(), arrivals_.end(), [](const Arrival& a, const Arrival& b) {
    return std::tie(a.source, a.part, a.shard) < std::tie(b.source, b.part, b.shard);
  });
}

const Part& SharedStatistics::own_part(size_t shard) const {
  return layout_.parts()[static_cast<size_t>(layout_.parts_of(layout_.rank())[shard])];
}

std::span<const compute::ColumnRange> SharedStatistics::ranges(size_t shard) const {
  return ranges_of(layout_.parts_of(layout_.rank())[shard]);
}

std::span<const compute::ColumnRange> SharedStatistics::ranges_of(int32_t part) const {
  const auto found = ranges_.find(part);
  return found == ranges_.end() ? std::span<const compute::ColumnRange>() : found->second;
}

size_t SharedStatistics::floats_per_row(int32_t part) const {
  const int32_t table = layout_.parts()[static_cast<size_t>(part)].table;
  return ranges_of(part).size() * static_cast<size_t>(values_[static_cast<size_t>(table)]);
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

void SharedStatistics::find_overlaps() {
  searches_.clear();
  size_t at = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!shared_[i]) continue;
    const size_t bounds = 2 * neighbours_[i].size();
    searches_.push_back({.rows = rows_[i].data(),
                         .count = std::ssize(rows_[i]),
                         .bounds = std::span(bounds_).subspan(at, bounds),
                         .before = before_.data() + at});
    at += bounds;
  }
  backend_.slots().find_rows(searches_);
  const int64_t* before = before_.data();
  for (std::vector<Neighbour>& neighbours : neighbours_) {
    for (Neighbour& neighbour : neighbours) {
      neighbour.first_unique = *before++;
      neighbour.last_unique = *before++;
    }
  }
}

void SharedStatistics::pack(comm::MessageBuffer& buffer) {
  find_overlaps();
  // Two walks over the same pieces: sizes, then contents. A message holds, own shard after own
  // shard and neighbour after neighbour of its reader, the sums of the overlap.
  const auto for_each_piece = [&](int reader, auto visit) {
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (!shared_[i]) continue;
      const size_t floats = floats_per_row(layout_.parts_of(layout_.rank())[i]);
      for (const Neighbour& neighbour : neighbours_[i]) {
        if (layout_.parts()[static_cast<size_t>(neighbour.part)].owner != reader) continue;
        const auto first = static_cast<size_t>(neighbour.first_unique);
        const auto last = static_cast<size_t>(neighbour.last_unique);
        visit(std::as_bytes(std::span(own_sums_[i] + first * floats, (last - first) * floats)));
      }
    }
  };
  size_t bytes = 0;
  for (int reader = 0; reader < layout_.ranks(); ++reader) {
    for_each_piece(reader, [&](comm::ConstBytes sums) { bytes += sums.size(); });
  }
  std::byte* out = buffer.resize(bytes);
  for (int reader = 0; reader < layout_.ranks(); ++reader) {
    std::byte* const message = out;
    for_each_piece(reader, [&](comm::ConstBytes sums) {
      if (!sums.empty()) backend_.transfer().copy(out, sums.data(), sums.size());
      out += sums.size();
    });
    messages_[static_cast<size_t>(reader)] = buffer.host(message, out);
    if (out != message) buffer.publish(message, out);
  }
}

void SharedStatistics::add_up(std::span<const comm::ConstBytes> messages) {
  open(messages);
  addends_.clear();
  sums_of_shards_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (!shared_[i]) continue;
    const size_t first = addends_.size();
    list_addends(i);
    sums_of_shards_.push_back(
        {.rows = std::ssize(rows_[i]),
         .values = values_[static_cast<size_t>(own_part(i).table)],
         .addends = {addends_.begin() + static_cast<ptrdiff_t>(first), addends_.end()},
         .out = totals_[i]});
  }
  backend_.slots().add_row_totals(sums_of_shards_);
}

// Where in the messages the sums of each neighbour are.
void SharedStatistics::open(std::span<const comm::ConstBytes> messages) {
  size_t before = 0;  // floats of the source's message
  const auto bodies = received_->open(messages);
  for (size_t i = 0; i < arrivals_.size(); ++i) {
    const Arrival& arrival = arrivals_[i];
    if (i == 0 || arrivals_[i - 1].source != arrival.source) before = 0;
    Neighbour& neighbour = neighbours_[arrival.shard][arrival.neighbour];
    const comm::ConstBytes body = bodies[static_cast<size_t>(arrival.source)];
    const size_t count = static_cast<size_t>(neighbour.last_unique - neighbour.first_unique) *
                         floats_per_row(neighbour.part);
    if ((before + count) * sizeof(float) > body.size()) {
      core::fail(SHARDREC_CORRUPT_DATA,
                 core::sentence("rank ", arrival.source, " sent row statistics that are cut off"),
                 {.rank = int64_t{arrival.source}, .operation = "backward"});
    }
    const auto* sums = static_cast<const float*>(static_cast<const void*>(body.data()));
    neighbour.sums = count == 0 ? nullptr : sums + before;
    before += count;
  }
}

// What is added up for a shard, by ascending column.
void SharedStatistics::list_addends(size_t shard) {
  const Part& part = own_part(shard);
  const auto values = static_cast<size_t>(values_[static_cast<size_t>(part.table)]);
  ranges_of_shard_.clear();
  const auto add_ranges = [&](int32_t p, const float* sums, int64_t first, int64_t last) {
    if (first == last) return;  // sums are null
    const auto ranges = ranges_of(p);
    for (size_t s = 0; s < ranges.size(); ++s) {
      ranges_of_shard_.push_back(
          {column_at(layout_.parts()[static_cast<size_t>(p)], ranges[s].begin),
           {.sums = sums + s * values, .stride = floats_per_row(p), .first = first, .last = last}});
    }
  };
  add_ranges(layout_.parts_of(layout_.rank())[shard], own_sums_[shard], 0,
             std::ssize(rows_[shard]));
  for (const Neighbour& neighbour : neighbours_[shard]) {
    add_ranges(neighbour.part, neighbour.sums, neighbour.first_unique, neighbour.last_unique);
  }
  std::sort(ranges_of_shard_.begin(), ranges_of_shard_.end(),
            [](const Range& a, const Range& b) { return a.col < b.col; });
  for (const Range& range : ranges_of_shard_) addends_.push_back(range.addend);
}

}  // namespace shardrec::embedding
