#include "embedding/tables/layout.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace shardrec::embedding {

Layout::Layout(const plan::Model& model, const plan::Plan& plan, int rank, bool sums_on_nodes)
    : model_(model),
      output_(plan::output_layout(model)),
      topology_(plan.topology),
      rank_(rank),
      ranks_(plan.topology.ranks),
      tables_(model.tables.size()),
      parts_of_(static_cast<size_t>(plan.topology.ranks)),
      blocks_of_(static_cast<size_t>(plan.topology.ranks)) {
  for (size_t f = 0; f < model.features.size(); ++f) {
    tables_[static_cast<size_t>(model.features[f].table)].features.push_back(
        static_cast<int32_t>(f));
  }
  size_t most_parts = 0;
  for (const plan::TablePlan& table : plan.tables) {
    most_parts += table.replicated ? static_cast<size_t>(ranks_) : table.boxes.size();
  }
  parts_.reserve(most_parts);
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    add_parts(plan, table);
    build_routing(tables_[t], table);
    build_segments(tables_[t], plan, table);
    if (sums_on_nodes && topology_.nodes() > 1) find_node_sums(tables_[t]);
    tables_[t].whole = tables_[t].routing.intervals() == 1 &&
                       model_.tables[t].out_of_range != SHARDREC_OUT_OF_RANGE_DROP;
    tables_[t].owner_applies_divisor =
        model_.optimizer_of(table).max_gradient == 0 &&
        std::none_of(tables_[t].features.begin(), tables_[t].features.end(), [&](int32_t feature) {
          return model_.features[static_cast<size_t>(feature)].pooling == SHARDREC_POOLING_MEAN;
        });
  }
  first_block_.resize(parts_.size());
  for (size_t p = 0; p < parts_.size(); ++p) {
    const Part& part = parts_[p];
    const auto owner = static_cast<size_t>(part.owner);
    parts_of_[owner].push_back(static_cast<int32_t>(p));
    first_block_[p] = static_cast<int32_t>(blocks_of_[owner].size());
    for (const int32_t feature : tables_[static_cast<size_t>(part.table)].features) {
      blocks_of_[owner].push_back({static_cast<int32_t>(p), feature, is_sequence(feature)});
    }
  }
}

std::span<const ColumnPiece> Layout::keep(std::vector<ColumnPiece> columns) {
  return *columns_.insert(std::move(columns)).first;
}

void Layout::add_parts(const plan::Plan& plan, int32_t table) {
  TableLayout& layout = tables_[static_cast<size_t>(table)];
  const plan::Table& shape = model_.tables[static_cast<size_t>(table)];
  const plan::TablePlan& boxes = plan.tables[static_cast<size_t>(table)];
  layout.replicated = boxes.replicated;
  layout.replication = boxes.replication;
  if (boxes.replicated) {
    if (layout.own_ids_only() && ranks_ > 1 && !plan::fits_slots(shape.rows, ranks_)) {
      core::fail(SHARDREC_UNSUPPORTED,
                 core::sentence("table \"", shape.name, "\" of ", shape.rows,
                                " rows is replicated by rows or bits over ", ranks_,
                                " ranks: at most ", plan::kMostSlotRows,
                                " rows per rank are accepted; by samples, any number"),
                 {.value = shape.rows, .table = shape.name});
    }
    const auto columns = keep({{0, shape.dim, 0}});
    for (int r = 0; r < ranks_; ++r) {
      layout.parts.push_back(static_cast<int32_t>(parts_.size()));
      if (!layout.own_ids_only() || r == rank_) layout.receivers.push_back(layout.parts.back());
      parts_.push_back({table, r, 0, shape.rows, shape.dim, columns, true});
    }
    return;
  }
  std::map<std::tuple<int64_t, int64_t, int32_t>, std::vector<ColumnPiece>> grouped;
  for (const plan::Box& box : boxes.boxes) {
    const plan::Rectangle& cells = box.cells;
    grouped[{cells.row, cells.rows, box.rank}].push_back({cells.col, cells.cols, 0});
  }
  std::vector<Part> parts;
  for (auto& [key, columns] : grouped) {
    const auto& [row, rows, owner] = key;
    std::sort(columns.begin(), columns.end(),
              [](const ColumnPiece& a, const ColumnPiece& b) { return a.col < b.col; });
    int64_t width = 0;
    for (ColumnPiece& piece : columns) {
      piece.offset = width;
      width += piece.cols;
    }
    parts.push_back({table, owner, row, rows, width, keep(std::move(columns)), false});
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tie(a.row, a.columns[0].col, a.rows) < std::tie(b.row, b.columns[0].col, b.rows);
  });
  for (const Part& part : parts) {
    layout.parts.push_back(static_cast<int32_t>(parts_.size()));
    parts_.push_back(part);
  }
  layout.receivers = layout.parts;
}

void Layout::build_routing(TableLayout& layout, int32_t table) {
  Routing& routing = layout.routing;
  routing.cuts = {0, model_.tables[static_cast<size_t>(table)].rows};
  for (const int32_t p : layout.parts) {
    const Part& part = parts_[static_cast<size_t>(p)];
    routing.cuts.push_back(part.row);
    routing.cuts.push_back(part.row + part.rows);
  }
  std::sort(routing.cuts.begin(), routing.cuts.end());
  routing.cuts.erase(std::unique(routing.cuts.begin(), routing.cuts.end()), routing.cuts.end());

  routing.first_target.push_back(0);
  for (size_t i = 0; i < routing.intervals(); ++i) {
    for (size_t k = 0; k < layout.receivers.size(); ++k) {
      const Part& part = parts_[static_cast<size_t>(layout.receivers[k])];
      if (part.row <= routing.cuts[i] && routing.cuts[i] < part.row + part.rows) {
        routing.targets.push_back(static_cast<int32_t>(k));
      }
    }
    routing.first_target.push_back(static_cast<int32_t>(routing.targets.size()));
    if (!layout.replicated && routing.first_target[i + 1] - routing.first_target[i] > 1) {
      layout.cut_by_columns = true;
    }
  }
  const auto interval_from = [&](int64_t row) {
    const auto cut = std::lower_bound(routing.cuts.begin(), routing.cuts.end(), row);
    return static_cast<int32_t>(cut - routing.cuts.begin());
  };
  for (const int32_t p : layout.parts) {
    Part& part = parts_[static_cast<size_t>(p)];
    part.first_interval = interval_from(part.row);
    part.end_interval = interval_from(part.row + part.rows);
  }
  routing.streams = routing.intervals() <= Routing::kMostStreams &&
                    routing.targets.size() == layout.receivers.size();
  const int64_t first = routing.cuts[1];
  bool even = true;
  for (size_t i = 1; i + 1 < routing.cuts.size(); ++i) {
    const int64_t length = routing.cuts[i + 1] - routing.cuts[i];
    const bool last = i + 2 == routing.cuts.size();
    even = even && (last ? length <= first : length == first);
  }
  routing.even = even ? first : 0;
  if (routing.even > 1 && routing.cuts.back() <= int64_t{UINT32_MAX}) {
    routing.reciprocal = UINT64_MAX / static_cast<uint64_t>(routing.even) + 1;
  }
}

void Layout::build_segments(TableLayout& layout, const plan::Plan& plan, int32_t table) {
  std::vector<int64_t> cuts = {0, model_.tables[static_cast<size_t>(table)].dim};
  for (const int32_t p : layout.parts) {
    for (const ColumnPiece& piece : parts_[static_cast<size_t>(p)].columns) {
      cuts.push_back(piece.col);
      cuts.push_back(piece.col + piece.cols);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());

  for (size_t i = 0; i + 1 < cuts.size(); ++i) {
    Segment segment{.col = cuts[i],
                    .cols = cuts[i + 1] - cuts[i],
                    .addends = {},
                    .node_ends = {},
                    .nodes = {},
                    .addend_of = {}};
    // By node in order of the node's first row; inside a node by row.
    std::map<int32_t, std::vector<Addend>> by_node;
    for (size_t k = 0; k < layout.parts.size(); ++k) {
      const Part& part = parts_[static_cast<size_t>(layout.parts[k])];
      if (part.replicated && part.owner != rank_) continue;
      for (const ColumnPiece& piece : part.columns) {
        if (piece.col <= segment.col && segment.col < piece.col + piece.cols) {
          by_node[plan.topology.node_of(part.owner)].push_back(
              {static_cast<int32_t>(k), piece.offset + segment.col - piece.col});
        }
      }
    }
    const auto first_row = [&](const std::vector<Addend>& addends) {
      return parts_[static_cast<size_t>(layout.parts[static_cast<size_t>(addends[0].part)])].row;
    };
    std::vector<std::pair<int32_t, std::vector<Addend>>> nodes(by_node.begin(), by_node.end());
    std::sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) {
      return first_row(a.second) < first_row(b.second);
    });
    for (const auto& [node, addends] : nodes) {
      segment.addends.insert(segment.addends.end(), addends.begin(), addends.end());
      segment.node_ends.push_back(static_cast<int32_t>(segment.addends.size()));
      segment.nodes.push_back(node);
    }
    segment.addend_of.resize(layout.routing.intervals());
    for (size_t a = 0; a < segment.addends.size(); ++a) {
      const Part& part =
          parts_[static_cast<size_t>(layout.parts[static_cast<size_t>(segment.addends[a].part)])];
      std::fill(segment.addend_of.begin() + part.first_interval,
                segment.addend_of.begin() + part.end_interval, static_cast<int32_t>(a));
    }
    layout.segments.push_back(std::move(segment));
  }
}

// Parts that share a segment with another part of their node.
void Layout::find_node_sums(const TableLayout& layout) {
  if (layout.replicated) return;
  for (const Segment& segment : layout.segments) {
    for (size_t n = 0; n < segment.nodes.size(); ++n) {
      if (segment.node_end(n) - segment.node_begin(n) == 1) continue;
      for (size_t a = segment.node_begin(n); a < segment.node_end(n); ++a) {
        const auto k = static_cast<size_t>(segment.addends[a].part);
        parts_[static_cast<size_t>(layout.parts[k])].summed_on_node = true;
        sums_on_nodes_ = true;
      }
    }
  }
}

bool Layout::sums_segment(int32_t feature, const Segment& segment, size_t n) const {
  if (is_sequence(feature)) return false;
  const auto& parts = table(model_.features[static_cast<size_t>(feature)].table).parts;
  const auto k = static_cast<size_t>(segment.addends[segment.node_begin(n)].part);
  return parts_[static_cast<size_t>(parts[k])].summed_on_node;
}

// Ranks of equal place in their nodes work for each other, so that none has more to add.
int Layout::adder(int source, int32_t node) const {
  const int32_t first = node * topology_.ranks_per_node;
  const int32_t count = std::min(topology_.ranks_per_node, topology_.ranks - first);
  return first + source % topology_.ranks_per_node % count;
}

}  // namespace shardrec::embedding
