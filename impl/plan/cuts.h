// The cuts that the named sharding kinds are made of. Shared by the layout, which places them, and
// by the report, which recognises them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.h"

namespace shardrec::plan {

struct Range {
  int64_t first = 0;
  int64_t size = 0;

  bool operator==(const Range&) const = default;
};

// ceil(rows / parts) rows for each part in order, the last ones short or empty.
Range row_cut(int64_t rows, int64_t parts, int64_t part);

// Near-equal widths for each part in order. From dim >= 4 * parts on they are multiples of 4,
// except that the last part also takes dim mod 4 columns; below, the first dim mod parts are wider
// by one.
Range column_cut(int64_t dim, int64_t parts, int64_t part);

// The most parts, up to `most`, of which each has at least min_columns columns (in [1, dim]).
int64_t column_parts(int64_t dim, int64_t most, int64_t min_columns);

// The ranks of a topology that may own boxes of a table, ascending.
class RankPool {
 public:
  RankPool(const Topology& topology, const RankSet& allowed);

  std::span<const int32_t> ranks() const { return ranks_; }
  std::span<const int32_t> of_node(int32_t node) const;
  std::vector<int32_t> nodes() const;  // that have such ranks, ascending
  bool has_all() const { return std::ssize(ranks_) == topology_.ranks; }

 private:
  Topology topology_;
  std::vector<int32_t> ranks_;
};

// Boxes of the parts in rank order, empty ones left out, ordered by (row, col).
std::vector<Box> cut_rows(const Table& table, std::span<const int32_t> ranks);
std::vector<Box> cut_columns(const Table& table, std::span<const int32_t> ranks);
// Columns over these nodes, rows over their ranks.
std::vector<Box> cut_grid(const Table& table, const RankPool& pool, std::span<const int32_t> nodes);

// The kind whose cuts these are under the topology, within what the table allows; empty for boxes
// of no named kind. Where kinds coincide (one rank), the simplest.
std::optional<shardrec_sharding> recognise(const TablePlan& plan, const Table& table,
                                           const Topology& topology);

}  // namespace shardrec::plan
