#include "embedding/tables/layout.h"

#include <algorithm>
#include <ranges>

namespace shardrec::embedding {

Layout::Layout(const plan::Model& model, const plan::Plan& plan, const ShardingGroups& groups,
               int rank, bool sums_on_nodes)
    : rank_(rank),
      common_(common_layout(model, plan, groups, sums_on_nodes)),
      own_replica_(table_count()),
      own_routes_(model.features.size()) {
  for (size_t t = 0; t < own_replica_.size(); ++t) {
    const TableLayout& table = this->table(static_cast<int32_t>(t));
    for (size_t k = 0; k < table.features.size(); ++k) {
      if (!common_->route(table.features[k]).blocks.empty()) continue;
      const auto number = static_cast<int32_t>(t);
      own_routes_[static_cast<size_t>(table.features[k])] =
          shares_states(number) ? common_->route_to_group(groups.group_of(rank), table, k)
                                : common_->route_to(receivers(number), table, k);
    }
    if (!table.replicated) continue;
    own_replica_[t] = {.col = 0,
                       .cols = model.tables[t].dim,
                       .addends = {{.part = 0, .offset = 0}},
                       .node_ends = {1},
                       .nodes = {node_of(rank)},
                       .addend_of = {0}};
  }
}

bool Layout::any_cut() const {
  const auto tables = std::views::iota(size_t{0}, table_count());
  return std::ranges::any_of(tables,
                             [&](size_t t) { return !table(static_cast<int32_t>(t)).replicated; });
}

bool Layout::sums_segment(int32_t feature, const Segment& segment, size_t n) const {
  if (is_sequence(feature)) return false;
  const PartRange parts = answering(model().features[static_cast<size_t>(feature)].table);
  const auto k = static_cast<size_t>(segment.addends[segment.node_begin(n)].part);
  return this->parts()[static_cast<size_t>(parts[k])].summed_on_node;
}

// Ranks of equal place in their nodes work for each other, so that none has more to add.
int Layout::adder(int source, int32_t node) const {
  const plan::Topology& topology = plan().topology;
  const int32_t first = node * topology.ranks_per_node;
  const int32_t count = std::min(topology.ranks_per_node, topology.ranks - first);
  return first + source % topology.ranks_per_node % count;
}

}  // namespace shardrec::embedding
