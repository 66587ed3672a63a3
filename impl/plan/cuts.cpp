#include "plan/cuts.h"

#include <algorithm>
#include <utility>

namespace shardrec::plan {

Range row_cut(int64_t rows, int64_t parts, int64_t part) {
  const int64_t height = (rows + parts - 1) / parts;
  const int64_t first = std::min(part * height, rows);
  return {first, std::min(height, rows - first)};
}

Range column_cut(int64_t dim, int64_t parts, int64_t part) {
  const int64_t unit = dim >= 4 * parts ? 4 : 1;
  const int64_t units = dim / unit;
  const int64_t wider = units % parts;
  const int64_t first = part * (units / parts) + std::min(part, wider);
  const int64_t count = units / parts + (part < wider ? 1 : 0);
  const int64_t rest = part == parts - 1 ? dim % unit : 0;
  return {first * unit, count * unit + rest};
}

int64_t column_parts(int64_t dim, int64_t most, int64_t min_columns) {
  int64_t parts = std::clamp<int64_t>(dim / min_columns, 1, most);
  // The last part differs from the others by what is left of fours.
  const auto narrowest = [&] {
    const int64_t last = column_cut(dim, parts, parts - 1).size;
    return parts == 1 ? last : std::min(last, column_cut(dim, parts, parts - 2).size);
  };
  while (parts > 1 && narrowest() < min_columns) --parts;
  return parts;
}

RankPool::RankPool(const Topology& topology, const RankSet& allowed) : topology_(topology) {
  for (int32_t rank = 0; rank < topology.ranks; ++rank) {
    if (allowed.has(rank)) ranks_.push_back(rank);
  }
}

std::span<const int32_t> RankPool::of_node(int32_t node) const {
  const int64_t first = int64_t{node} * topology_.ranks_per_node;
  const auto begin = std::lower_bound(ranks_.begin(), ranks_.end(), first);
  const auto end = std::lower_bound(begin, ranks_.end(), first + topology_.ranks_per_node);
  return {begin, end};
}

std::vector<int32_t> RankPool::nodes() const {
  std::vector<int32_t> nodes;
  for (const int32_t rank : ranks_) {
    const int32_t node = topology_.node_of(rank);
    if (nodes.empty() || nodes.back() != node) nodes.push_back(node);
  }
  return nodes;
}

std::vector<Box> cut_rows(const Table& table, std::span<const int32_t> ranks) {
  std::vector<Box> boxes;
  for (size_t part = 0; part < ranks.size(); ++part) {
    const Range rows = row_cut(table.rows, std::ssize(ranks), static_cast<int64_t>(part));
    if (rows.size == 0) break;
    boxes.push_back({ranks[part], {rows.first, rows.size, 0, table.dim}});
  }
  return boxes;
}

std::vector<Box> cut_columns(const Table& table, std::span<const int32_t> ranks) {
  std::vector<Box> boxes;
  for (size_t part = 0; part < ranks.size(); ++part) {
    const Range cols = column_cut(table.dim, std::ssize(ranks), static_cast<int64_t>(part));
    if (cols.size == 0) break;
    boxes.push_back({ranks[part], {0, table.rows, cols.first, cols.size}});
  }
  return boxes;
}

std::vector<Box> cut_grid(const Table& table, const RankPool& pool,
                          std::span<const int32_t> nodes) {
  std::vector<Box> boxes;
  for (size_t part = 0; part < nodes.size(); ++part) {
    const Range cols = column_cut(table.dim, std::ssize(nodes), static_cast<int64_t>(part));
    if (cols.size == 0) break;
    for (Box box : cut_rows(table, pool.of_node(nodes[part]))) {
      box.cells.col = cols.first;
      box.cells.cols = cols.size;
      boxes.push_back(box);
    }
  }
  std::sort(boxes.begin(), boxes.end(),
            [](const Box& a, const Box& b) { return before(a.cells, b.cells); });
  return boxes;
}

namespace {

// Where least columns leave some of the ranks, or nodes, without a part, any of them may have been
// chosen: those that the boxes name.
std::vector<int32_t> chosen_for_columns(const Table& table, std::span<const int32_t> candidates,
                                        std::vector<int32_t> named) {
  const int64_t parts = column_parts(table.dim, std::ssize(candidates), table.limits.min_columns);
  if (parts == std::ssize(candidates)) return {candidates.begin(), candidates.end()};
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  const bool fits = std::ssize(named) == parts &&
                    std::includes(candidates.begin(), candidates.end(), named.begin(), named.end());
  return fits ? named : std::vector<int32_t>();
}

bool is_column_cut(const std::vector<Box>& boxes, const Table& table,
                   std::span<const int32_t> candidates) {
  std::vector<int32_t> named;
  named.reserve(boxes.size());
  for (const Box& box : boxes) named.push_back(box.rank);
  return boxes == cut_columns(table, chosen_for_columns(table, candidates, std::move(named)));
}

bool is_grid(const std::vector<Box>& boxes, const Table& table, const Topology& topology,
             const RankPool& pool) {
  std::vector<int32_t> named;
  named.reserve(boxes.size());
  for (const Box& box : boxes) named.push_back(topology.node_of(box.rank));
  return boxes == cut_grid(table, pool, chosen_for_columns(table, pool.nodes(), std::move(named)));
}

}  // namespace

std::optional<shardrec_sharding> recognise(const TablePlan& plan, const Table& table,
                                           const Topology& topology) {
  if (plan.replicated) return SHARDREC_SHARDING_DATA_PARALLEL;
  const std::vector<Box>& boxes = plan.boxes;
  if (boxes.empty()) return std::nullopt;
  const Box& box = boxes.front();
  if (boxes.size() == 1) {
    return box.cells == table.cells() ? std::optional(SHARDREC_SHARDING_TABLE_WISE) : std::nullopt;
  }
  const RankPool pool(topology, table.limits.ranks);
  if (boxes == cut_rows(table, pool.ranks())) return SHARDREC_SHARDING_ROW_WISE;
  if (is_column_cut(boxes, table, pool.ranks())) return SHARDREC_SHARDING_COLUMN_WISE;
  const auto node = pool.of_node(topology.node_of(box.rank));
  if (boxes == cut_rows(table, node)) return SHARDREC_SHARDING_TABLE_ROW_WISE;
  if (is_column_cut(boxes, table, node)) return SHARDREC_SHARDING_TABLE_COLUMN_WISE;
  if (is_grid(boxes, table, topology, pool)) return SHARDREC_SHARDING_GRID;
  return std::nullopt;
}

}  // namespace shardrec::plan
