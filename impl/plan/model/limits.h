// What a table's options allow a plan to make of it. Part of the model; the defaults allow all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardrec/options.h"

namespace shardrec::plan {

// Kinds of sharding that are cuts, TABLE_WISE to DATA_PARALLEL, as a set.
class ShardingKinds {
 public:
  constexpr ShardingKinds() = default;
  // A bit 1 << kind for each kind of the set; 0: all. Empty where a bit stands for no kind.
  static std::optional<ShardingKinds> of_mask(int64_t mask) noexcept;
  // "row_wise, grid" (spaces do not count), "all"; empty where a name is none of them.
  static std::optional<ShardingKinds> of_text(std::string_view text) noexcept;

  constexpr bool has(shardrec_sharding kind) const noexcept { return (mask_ >> kind & 1) != 0; }
  constexpr void remove(shardrec_sharding kind) noexcept { mask_ &= ~(uint32_t{1} << kind); }
  constexpr bool is_all() const noexcept { return mask_ == kAll; }
  constexpr bool empty() const noexcept { return mask_ == 0; }
  int64_t mask() const noexcept { return is_all() ? 0 : mask_; }
  std::string text() const;   // "all" for all
  std::string names() const;  // "table_wise, row_wise, ...", for all too

  bool operator==(const ShardingKinds&) const = default;

 private:
  static constexpr uint32_t kAll = 0xfe;  // bits 1 to 7
  explicit constexpr ShardingKinds(uint32_t mask) : mask_(mask) {}
  uint32_t mask_ = kAll;
};

// Ranks as ranges, ascending and apart; no range: all ranks.
class RankSet {
 public:
  // "0-3, 7": numbers in [0, 2^20), in any order, which may overlap. "": all. Empty for other text.
  static std::optional<RankSet> of_text(std::string_view text);

  bool has(int32_t rank) const noexcept;
  bool is_all() const noexcept { return ranges_.empty(); }
  std::string text() const;  // "0-3, 7"

  bool operator==(const RankSet&) const = default;

 private:
  struct Range {
    int32_t first = 0;
    int32_t last = 0;
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> ranges_;
};

struct Limits {
  ShardingKinds sharding{};
  RankSet ranks{};
  int64_t min_columns = 1;

  bool operator==(const Limits&) const = default;
};

}  // namespace shardrec::plan
