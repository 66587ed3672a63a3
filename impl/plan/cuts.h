// The cuts that the named sharding kinds are made of. Shared by the layout, which places them, and
// by the report, which recognises them.
#pragma once

#include <cstdint>
#include <optional>
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
// by one, and parts may be empty.
Range column_cut(int64_t dim, int64_t parts, int64_t part);

// Ranks [first, first + count).
struct RankRange {
  int32_t first = 0;
  int32_t count = 0;
};
RankRange ranks_of_node(const Topology& topology, int32_t node);

// Boxes of the parts in rank order, empty ones left out, ordered by (row, col).
std::vector<Box> cut_rows(const Table& table, RankRange ranks);
std::vector<Box> cut_columns(const Table& table, RankRange ranks);
std::vector<Box> cut_grid(const Table& table, const Topology& topology);

// The kind whose cuts these are under the topology; empty for boxes of no named kind. Where kinds
// coincide (one rank), the simplest.
std::optional<shardrec_sharding> recognise(const TablePlan& plan, const Table& table,
                                           const Topology& topology);

}  // namespace shardrec::plan
