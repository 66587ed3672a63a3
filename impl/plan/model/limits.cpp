#include "plan/model/limits.h"

#include <algorithm>
#include <charconv>

#include "plan/model/names.h"

namespace shardrec::plan {
namespace {

constexpr int32_t kMostRank = (1 << 20) - 1;

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Calls take(part) for each part between commas, without the spaces around it, until one is false.
template <class Take>
bool for_each_part(std::string_view text, const Take& take) {
  for (;;) {
    const size_t comma = text.find(',');
    if (!take(trimmed(text.substr(0, comma)))) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

std::optional<int32_t> rank_of(std::string_view text) noexcept {
  int32_t rank = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), rank);
  const bool whole = result.ec == std::errc() && result.ptr == text.data() + text.size();
  return whole && rank >= 0 && rank <= kMostRank ? std::optional(rank) : std::nullopt;
}

}  // namespace

std::optional<ShardingKinds> ShardingKinds::of_mask(int64_t mask) noexcept {
  if (mask == 0) return ShardingKinds();
  if (mask < 0 || (mask & ~int64_t{kAll}) != 0) return std::nullopt;
  return ShardingKinds(static_cast<uint32_t>(mask));
}

std::optional<ShardingKinds> ShardingKinds::of_text(std::string_view text) noexcept {
  if (trimmed(text) == "all") return ShardingKinds();
  uint32_t mask = 0;
  const bool known = for_each_part(text, [&](std::string_view name) {
    const auto kind = value_of<shardrec_sharding>(name);
    if (!kind || (kAll >> *kind & 1) == 0) return false;
    mask |= uint32_t{1} << *kind;
    return true;
  });
  return known ? std::optional(ShardingKinds(mask)) : std::nullopt;
}

std::string ShardingKinds::text() const { return is_all() ? "all" : names(); }

std::string ShardingKinds::names() const {
  std::string out;
  for (int kind = SHARDREC_SHARDING_TABLE_WISE; kind <= SHARDREC_SHARDING_DATA_PARALLEL; ++kind) {
    const auto named = static_cast<shardrec_sharding>(kind);
    if (has(named)) out += (out.empty() ? "" : ", ") + std::string(name_of(named));
  }
  return out;
}

std::optional<RankSet> RankSet::of_text(std::string_view text) {
  RankSet set;
  if (trimmed(text).empty()) return set;
  const bool valid = for_each_part(text, [&](std::string_view part) {
    const size_t dash = part.find('-');
    const auto first = rank_of(trimmed(part.substr(0, dash)));
    const auto last =
        dash == std::string_view::npos ? first : rank_of(trimmed(part.substr(dash + 1)));
    if (!first || !last || *last < *first) return false;
    set.ranges_.push_back({*first, *last});
    return true;
  });
  if (!valid) return std::nullopt;
  std::sort(set.ranges_.begin(), set.ranges_.end(),
            [](const Range& a, const Range& b) { return a.first < b.first; });
  size_t kept = 0;
  for (const Range& range : set.ranges_) {
    Range& before = set.ranges_[kept];
    if (range.first <= before.last + 1) {
      before.last = std::max(before.last, range.last);
    } else {
      set.ranges_[++kept] = range;
    }
  }
  set.ranges_.resize(kept + 1);
  return set;
}

bool RankSet::has(int32_t rank) const noexcept {
  if (is_all()) return true;
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), rank,
                       [](int32_t r, const Range& range) { return r < range.first; });
  return after != ranges_.begin() && rank <= std::prev(after)->last;
}

std::string RankSet::text() const {
  std::string out;
  for (const Range& range : ranges_) {
    if (!out.empty()) out += ", ";
    out += std::to_string(range.first);
    if (range.last > range.first) out.append("-").append(std::to_string(range.last));
  }
  return out;
}

}  // namespace shardrec::plan
