#include "embedding/tables/common_layout.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace shardrec::embedding {

CommonLayout::CommonLayout(const plan::Model& model, const plan::Plan& plan,
                           const ShardingGroups& groups, bool sums_on_nodes)
    : model_(model),
      plan_(plan),
      groups_(groups),
      output_(plan::output_layout(model)),
      may_sum_on_nodes_(sums_on_nodes),
      tables_(model.tables.size()),
      parts_of_(static_cast<size_t>(ranks())),
      blocks_of_(static_cast<size_t>(ranks())),
      routes_(model.features.size()) {
  for (size_t f = 0; f < model.features.size(); ++f) {
    tables_[static_cast<size_t>(model.features[f].table)].features.push_back(
        static_cast<int32_t>(f));
  }
  size_t most_parts = 0;
  for (const plan::TablePlan& table : plan_.tables) {
    most_parts += table.replicated ? static_cast<size_t>(ranks())
                                   : table.boxes.size() * static_cast<size_t>(groups.count) *
                                         (groups.share_states ? 2 : 1);
  }
  parts_.reserve(most_parts);
  for (size_t t = 0; t < tables_.size(); ++t) {
    const auto table = static_cast<int32_t>(t);
    add_parts(table);
    build_routing(tables_[t], table);
    if (!tables_[t].replicated) build_segments(tables_[t], table);
    if (sums_on_nodes && plan_.topology.nodes() > 1) find_node_sums(tables_[t]);
    tables_[t].whole = tables_[t].routing.intervals() == 1 && tables_[t].update_parts.count == 0 &&
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
  first_block_of_.push_back(0);
  for (const auto& blocks : blocks_of_) {
    first_block_of_.push_back(first_block_of_.back() + blocks.size());
  }
  for (const TableLayout& table : tables_) {
    if (table.replicated ? table.own_ids_only() : groups.count > 1 && !groups.exact) continue;
    if (table.update_parts.count != 0) continue;
    for (size_t k = 0; k < table.features.size(); ++k) {
      routes_[static_cast<size_t>(table.features[k])] = route_to(table.parts, table, k);
    }
  }
}

FeatureRoute CommonLayout::route_to(PartRange receivers, const TableLayout& table, size_t k) const {
  FeatureRoute route;
  route.blocks.reserve(receivers.size());
  for (const int32_t part : receivers) route.blocks.push_back(block_number(part, k));
  route.targets.reserve(table.routing.targets.size());
  for (const int32_t receiver : table.routing.targets) {
    const int32_t part = receivers[static_cast<size_t>(receiver)];
    route.targets.push_back({block_number(part, k), parts_[static_cast<size_t>(part)].row});
  }
  return route;
}

// The targets of the routing are those of a rank of the first group.
FeatureRoute CommonLayout::route_to_group(int group, const TableLayout& table, size_t k) const {
  const PartRange first = table.parts_of_group(0, groups_);
  const PartRange own = table.parts_of_group(group, groups_);
  FeatureRoute route;
  route.blocks.reserve(own.size() + table.update_parts.size());
  for (const int32_t part : own) route.blocks.push_back(block_number(part, k));
  for (const int32_t part : table.update_parts) route.blocks.push_back(block_number(part, k));
  route.targets.reserve(table.routing.targets.size());
  for (const int32_t receiver : table.routing.targets) {
    const auto number = static_cast<size_t>(receiver);
    const int32_t part = number < first.size() ? own[number] : table.parts[number];
    route.targets.push_back({block_number(part, k), parts_[static_cast<size_t>(part)].row});
  }
  return route;
}

void CommonLayout::keep(std::vector<ColumnPiece> columns, Part& part) {
  const auto [known, fresh] =
      columns_.try_emplace(std::move(columns), static_cast<int32_t>(column_cuts_.size()));
  if (fresh) column_cuts_.emplace_back(known->first);
  part.columns = known->first;
  part.column_cut = known->second;
}

void CommonLayout::add_parts(int32_t table) {
  TableLayout& layout = tables_[static_cast<size_t>(table)];
  const plan::Table& shape = model_.tables[static_cast<size_t>(table)];
  const plan::TablePlan& boxes = plan_.tables[static_cast<size_t>(table)];
  layout.replicated = boxes.replicated;
  layout.replication = boxes.replication;
  layout.parts.first = static_cast<int32_t>(parts_.size());
  if (boxes.replicated) {
    if (layout.own_ids_only() && ranks() > 1 && !plan::fits_slots(shape.rows, ranks())) {
      core::fail(SHARDREC_UNSUPPORTED,
                 core::sentence("table \"", shape.name, "\" of ", shape.rows,
                                " rows is replicated by rows or bits over ", ranks(),
                                " ranks: at most ", plan::kMostSlotRows,
                                " rows per rank are accepted; by samples, any number"),
                 {.value = shape.rows, .table = shape.name});
    }
    Part part{.table = table, .rows = shape.rows, .width = shape.dim, .replicated = true};
    keep({{0, shape.dim, 0}}, part);
    for (part.owner = 0; part.owner < ranks(); ++part.owner) parts_.push_back(part);
    layout.parts.count = ranks();
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
    Part& part = parts.emplace_back(
        Part{.table = table, .owner = owner, .row = row, .rows = rows, .width = width});
    keep(std::move(columns), part);
  }
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
    return std::tie(a.row, a.columns[0].col, a.rows) < std::tie(b.row, b.columns[0].col, b.rows);
  });
  for (int group = 0; group < groups_.count; ++group) {
    for (Part part : parts) {
      part.owner = groups_.rank_of(group, part.owner);
      if (groups_.share_states) part.use = PartUse::kLookups;
      parts_.push_back(part);
    }
  }
  if (groups_.share_states) add_update_parts(parts, layout);
  layout.parts.count = static_cast<int32_t>(parts_.size()) - layout.parts.first;
}

void CommonLayout::add_update_parts(std::span<const Part> parts, TableLayout& layout) {
  layout.update_parts.first = static_cast<int32_t>(parts_.size());
  for (int group = 0; group < groups_.count; ++group) {
    for (const Part& whole : parts) {
      const auto row_at = [&](int of_group) {
        return whole.row + whole.rows / groups_.count * of_group +
               std::min<int64_t>(whole.rows % groups_.count, of_group);
      };
      Part part = whole;
      part.owner = groups_.rank_of(group, whole.owner);
      part.row = row_at(group);
      part.rows = row_at(group + 1) - part.row;
      part.use = PartUse::kUpdates;
      if (part.rows != 0) parts_.push_back(part);
    }
  }
  layout.update_parts.count = static_cast<int32_t>(parts_.size()) - layout.update_parts.first;
}

void CommonLayout::build_routing(TableLayout& layout, int32_t table) {
  Routing& routing = layout.routing;
  routing.cuts = {0, model_.tables[static_cast<size_t>(table)].rows};
  for (const int32_t p : layout.parts) {
    const Part& part = parts_[static_cast<size_t>(p)];
    routing.cuts.push_back(part.row);
    routing.cuts.push_back(part.row + part.rows);
  }
  std::sort(routing.cuts.begin(), routing.cuts.end());
  routing.cuts.erase(std::unique(routing.cuts.begin(), routing.cuts.end()), routing.cuts.end());

  // Of own ids, the own replica is the only receiver; of cut tables, parts of the own group are, which are as those of any,
  // or those of all groups.
  const size_t receivers = layout.receivers_of_first_group(groups_).size();
  const bool shared = layout.update_parts.count != 0;
  // Of a cut table among them: of those for lookups, the parts of the first group, and one for updates.
  const int32_t copies = shared ? 2 : groups_.exact ? groups_.count : 1;
  const size_t first_group = layout.replicated ? 0 : layout.parts_of_group(0, groups_).size();
  routing.first_target.push_back(0);
  for (size_t i = 0; i < routing.intervals(); ++i) {
    for (size_t k = 0; k < receivers; ++k) {
      const Part& part = parts_[static_cast<size_t>(layout.parts[k])];
      if (part.use == PartUse::kLookups && k >= first_group) continue;
      if (part.row <= routing.cuts[i] && routing.cuts[i] < part.row + part.rows) {
        routing.targets.push_back(static_cast<int32_t>(k));
      }
    }
    routing.first_target.push_back(static_cast<int32_t>(routing.targets.size()));
    if (!layout.replicated && routing.first_target[i + 1] - routing.first_target[i] > copies) {
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
  routing.streams = !shared && routing.intervals() <= Routing::kMostStreams &&
                    routing.targets.size() == receivers;
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

void CommonLayout::build_segments(TableLayout& layout, int32_t table) {
  std::vector<int64_t> cuts = {0, model_.tables[static_cast<size_t>(table)].dim};
  const PartRange parts = layout.parts_of_group(0, groups_);
  for (const int32_t p : parts) {
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
    for (size_t k = 0; k < parts.size(); ++k) {
      const Part& part = parts_[static_cast<size_t>(parts[k])];
      for (const ColumnPiece& piece : part.columns) {
        if (piece.col <= segment.col && segment.col < piece.col + piece.cols) {
          by_node[plan_.topology.node_of(groups_.number_of(part.owner))].push_back(
              {static_cast<int32_t>(k), piece.offset + segment.col - piece.col});
        }
      }
    }
    const auto first_row = [&](const std::vector<Addend>& addends) {
      return parts_[static_cast<size_t>(parts[static_cast<size_t>(addends[0].part)])].row;
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
          parts_[static_cast<size_t>(parts[static_cast<size_t>(segment.addends[a].part)])];
      std::fill(segment.addend_of.begin() + part.first_interval,
                segment.addend_of.begin() + part.end_interval, static_cast<int32_t>(a));
    }
    layout.segments.push_back(std::move(segment));
  }
}

// Parts that share a segment with another part of their node.
void CommonLayout::find_node_sums(const TableLayout& layout) {
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

std::shared_ptr<const CommonLayout> common_layout(const plan::Model& model, const plan::Plan& plan,
                                                  const ShardingGroups& groups,
                                                  bool sums_on_nodes) {
  // Never destroyed: collections may be made and gone until the process ends.
  static constinit std::mutex mutex;
  static auto& in_use = *new std::vector<std::weak_ptr<const CommonLayout>>;
  const std::lock_guard lock(mutex);
  std::erase_if(in_use, [](const auto& layout) { return layout.expired(); });
  for (const auto& layout : in_use) {
    auto found = layout.lock();
    if (found != nullptr && found->is_of(model, plan, groups, sums_on_nodes)) return found;
  }
  auto made = std::make_shared<const CommonLayout>(model, plan, groups, sums_on_nodes);
  in_use.push_back(made);
  return made;
}

}  // namespace shardrec::embedding
