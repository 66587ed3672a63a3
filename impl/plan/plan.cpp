#include "plan/plan.h"

#include <algorithm>

#include "core/error.h"
#include "plan/model/names.h"
#include "plan/tiling.h"

namespace shardrec::plan {

namespace {

using core::fail;
using core::sentence;

constexpr int32_t kMostRanks = 1 << 20;

TablePlan& table_of(Plan& plan, const Model& model, int32_t table) {
  if (plan.tables.size() != model.tables.size()) {
    fail(SHARDREC_INVALID_ARGUMENT, sentence("the plan is for ", plan.tables.size(),
                                             " tables, the model has ", model.tables.size()));
  }
  if (table < 0 || table >= std::ssize(model.tables)) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("there is no table ", table, "; the model has ", model.tables.size(), " tables"),
         {.value = table, .limit = std::ssize(model.tables)});
  }
  return plan.tables[static_cast<size_t>(table)];
}

}  // namespace

void check_topology(const Topology& topology) {
  if (topology.ranks < 1 || topology.ranks > kMostRanks) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("a topology has 1 to ", kMostRanks, " ranks, not ", topology.ranks),
         {.value = topology.ranks, .limit = kMostRanks + 1});
  }
  if (topology.ranks_per_node < 1 || topology.ranks_per_node > topology.ranks) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("a node has 1 to ", topology.ranks, " of ", topology.ranks, " ranks, not ",
                  topology.ranks_per_node),
         {.value = topology.ranks_per_node, .limit = topology.ranks + 1});
  }
}

void add_box(Plan& plan, const Model& model, int32_t table, const Box& box) {
  TablePlan& own = table_of(plan, model, table);
  const Table& about = model.tables[static_cast<size_t>(table)];
  if (own.replicated) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", about.name, "\" is replicated on all ranks; it takes no boxes"),
         {.table = about.name});
  }
  check_box(about, plan.topology, box);
  for (const Box& other : own.boxes) {
    if (!intersect(box.cells, other.cells).empty()) fail_overlap(about, other, box);
  }
  const auto place =
      std::upper_bound(own.boxes.begin(), own.boxes.end(), box,
                       [](const Box& a, const Box& b) { return before(a.cells, b.cells); });
  own.boxes.insert(place, box);
}

void replicate(Plan& plan, const Model& model, int32_t table, shardrec_replication replication) {
  TablePlan& own = table_of(plan, model, table);
  const std::string& name = model.tables[static_cast<size_t>(table)].name;
  if (!own.boxes.empty()) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("table \"", name, "\" has ", own.boxes.size(),
                  " boxes; it cannot be replicated as well"),
         {.table = name});
  }
  if (replication == SHARDREC_REPLICATION_AUTO ||
      !value_of<shardrec_replication>(name_of(replication))) {
    fail(SHARDREC_INVALID_ARGUMENT,
         sentence("the replication of a table is samples, rows or dense, not ",
                  static_cast<int>(replication)),
         {.value = replication, .table = name});
  }
  own.replicated = true;
  own.replication = replication;
}

}  // namespace shardrec::plan
