#include "plan/cuts.h"

#include <algorithm>
#include <tuple>

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

RankRange ranks_of_node(const Topology& topology, int32_t node) {
  const int32_t first = node * topology.ranks_per_node;
  return {first, std::min(topology.ranks_per_node, topology.ranks - first)};
}

std::vector<Box> cut_rows(const Table& table, RankRange ranks) {
  std::vector<Box> boxes;
  for (int32_t part = 0; part < ranks.count; ++part) {
    const Range rows = row_cut(table.rows, ranks.count, part);
    if (rows.size == 0) break;
    boxes.push_back({ranks.first + part, rows.first, rows.size, 0, table.dim});
  }
  return boxes;
}

std::vector<Box> cut_columns(const Table& table, RankRange ranks) {
  std::vector<Box> boxes;
  for (int32_t part = 0; part < ranks.count; ++part) {
    const Range cols = column_cut(table.dim, ranks.count, part);
    if (cols.size == 0) break;
    boxes.push_back({ranks.first + part, 0, table.rows, cols.first, cols.size});
  }
  return boxes;
}

std::vector<Box> cut_grid(const Table& table, const Topology& topology) {
  std::vector<Box> boxes;
  for (int32_t node = 0; node < topology.nodes(); ++node) {
    const Range cols = column_cut(table.dim, topology.nodes(), node);
    if (cols.size == 0) break;
    for (Box box : cut_rows(table, ranks_of_node(topology, node))) {
      box.col = cols.first;
      box.cols = cols.size;
      boxes.push_back(box);
    }
  }
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) {
    return std::tie(a.row, a.col) < std::tie(b.row, b.col);
  });
  return boxes;
}

std::optional<shardrec_sharding> recognise(const TablePlan& plan, const Table& table,
                                           const Topology& topology) {
  if (plan.replicated) return SHARDREC_SHARDING_DATA_PARALLEL;
  const std::vector<Box>& boxes = plan.boxes;
  if (boxes.empty()) return std::nullopt;
  const Box& box = boxes.front();
  if (boxes.size() == 1) {
    const bool whole = box.rows == table.rows && box.cols == table.dim;
    return whole ? std::optional(SHARDREC_SHARDING_TABLE_WISE) : std::nullopt;
  }
  const RankRange all = {0, topology.ranks};
  if (boxes == cut_rows(table, all)) return SHARDREC_SHARDING_ROW_WISE;
  if (boxes == cut_columns(table, all)) return SHARDREC_SHARDING_COLUMN_WISE;
  const RankRange node = ranks_of_node(topology, topology.node_of(box.rank));
  if (boxes == cut_rows(table, node)) return SHARDREC_SHARDING_TABLE_ROW_WISE;
  if (boxes == cut_columns(table, node)) return SHARDREC_SHARDING_TABLE_COLUMN_WISE;
  if (boxes == cut_grid(table, topology)) return SHARDREC_SHARDING_GRID;
  return std::nullopt;
}

}  // namespace shardrec::plan
