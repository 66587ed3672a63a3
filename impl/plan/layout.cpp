// Where the named sharding kinds put their boxes. Kinds that leave no choice come first; then the
// tables that one rank or one node takes, by falling bytes, each to the least loaded.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/tensor.h"
#include "plan/cuts.h"
#include "plan/names.h"
#include "plan/plan.h"
#include "plan/replication.h"

namespace shardrec::plan {

namespace {

constexpr int64_t kReplicateUpTo = 64 << 10;

int64_t element_bytes(const Table& table) {
  return static_cast<int64_t>(core::dtype_size(table.dtype));
}

int64_t bytes_of(const Table& table) { return table.rows * table.dim * element_bytes(table); }

// Bytes placed so far, by rank and by node. Among equals the lowest number is least.
class Loads {
 public:
  explicit Loads(const Topology& topology)
      : topology_(topology),
        rank_bytes_(static_cast<size_t>(topology.ranks), 0),
        node_bytes_(static_cast<size_t>(topology.nodes()), 0) {
    for (int32_t rank = 0; rank < topology.ranks; ++rank) ranks_.emplace(0, rank);
    for (int32_t node = 0; node < topology.nodes(); ++node) nodes_.emplace(0, node);
  }

  void add(const std::vector<Box>& boxes, const Table& table) {
    for (const Box& box : boxes) {
      const int64_t bytes = box.rows * box.cols * element_bytes(table);
      const int32_t node = topology_.node_of(box.rank);
      move(ranks_, rank_bytes_, box.rank, bytes, 1);
      move(nodes_, node_bytes_, node, bytes, ranks_of_node(topology_, node).count);
    }
  }

  int32_t least_rank() const { return ranks_.begin()->second; }
  int32_t least_node() const { return nodes_.begin()->second; }

 private:
  using Order = std::set<std::pair<int64_t, int32_t>>;

  // Orders by bytes per rank, so that a smaller last node takes its share and no more.
  static void move(Order& order, std::vector<int64_t>& bytes, int32_t index, int64_t more,
                   int64_t ranks) {
    int64_t& now = bytes[static_cast<size_t>(index)];
    auto entry = order.extract({now / ranks, index});
    now += more;
    entry.value() = {now / ranks, index};
    order.insert(std::move(entry));
  }

  Topology topology_;
  std::vector<int64_t> rank_bytes_;
  std::vector<int64_t> node_bytes_;
  Order ranks_;
  Order nodes_;
};

shardrec_sharding kind_of_table(const Model& model, const Topology& topology,
                                shardrec_sharding kind, size_t table, int64_t total_bytes) {
  if (kind == SHARDREC_SHARDING_MIXED) return static_cast<shardrec_sharding>(1 + table % 7);
  if (kind != SHARDREC_SHARDING_AUTO) return kind;
  const int64_t bytes = bytes_of(model.tables[table]);
  if (bytes <= kReplicateUpTo) return SHARDREC_SHARDING_DATA_PARALLEL;
  if (bytes <= total_bytes / topology.ranks) return SHARDREC_SHARDING_TABLE_WISE;
  return SHARDREC_SHARDING_ROW_WISE;
}

// The boxes of a table whose kind leaves a choice, or of one that does not, given the loads so far.
std::vector<Box> place(const Table& table, const Topology& topology, shardrec_sharding kind,
                       const Loads& loads) {
  const RankRange all = {0, topology.ranks};
  switch (kind) {
    case SHARDREC_SHARDING_TABLE_WISE:
      return {{loads.least_rank(), 0, table.rows, 0, table.dim}};
    case SHARDREC_SHARDING_ROW_WISE:
      return cut_rows(table, all);
    case SHARDREC_SHARDING_COLUMN_WISE:
      return cut_columns(table, all);
    case SHARDREC_SHARDING_TABLE_ROW_WISE:
      return cut_rows(table, ranks_of_node(topology, loads.least_node()));
    case SHARDREC_SHARDING_TABLE_COLUMN_WISE:
      return cut_columns(table, ranks_of_node(topology, loads.least_node()));
    case SHARDREC_SHARDING_GRID:
      return cut_grid(table, topology);
    default:
      return {};
  }
}

bool leaves_choice(shardrec_sharding kind) {
  return kind == SHARDREC_SHARDING_TABLE_WISE || kind == SHARDREC_SHARDING_TABLE_ROW_WISE ||
         kind == SHARDREC_SHARDING_TABLE_COLUMN_WISE;
}

}  // namespace

Plan make_plan(const Model& model, const Topology& topology, const PlanOptions& options) {
  const shardrec_sharding kind = options.sharding;
  check_topology(topology);
  if (!value_of<shardrec_sharding>(name_of(kind))) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("there is no sharding kind ", static_cast<int>(kind),
                              "; accepted: ", names_of<shardrec_sharding>()));
  }
  const size_t count = model.tables.size();
  const int64_t total_bytes =
      std::accumulate(model.tables.begin(), model.tables.end(), int64_t{0},
                      [](int64_t sum, const Table& table) { return sum + bytes_of(table); });

  Plan plan{topology, std::vector<TablePlan>(count)};
  Loads loads(topology);
  std::vector<std::pair<size_t, shardrec_sharding>> choices;
  for (size_t i = 0; i < count; ++i) {
    const shardrec_sharding own = kind_of_table(model, topology, kind, i, total_bytes);
    if (leaves_choice(own)) {
      choices.emplace_back(i, own);
      continue;
    }
    plan.tables[i].replicated = own == SHARDREC_SHARDING_DATA_PARALLEL;
    if (plan.tables[i].replicated) {
      plan.tables[i].replication = choose_replication(model, i, topology.ranks, options);
    }
    plan.tables[i].boxes = place(model.tables[i], topology, own, loads);
    loads.add(plan.tables[i].boxes, model.tables[i]);
  }
  std::sort(choices.begin(), choices.end(), [&](const auto& a, const auto& b) {
    const int64_t bytes_a = bytes_of(model.tables[a.first]);
    const int64_t bytes_b = bytes_of(model.tables[b.first]);
    return bytes_a != bytes_b ? bytes_a > bytes_b : a.first < b.first;
  });
  for (const auto& [table, own] : choices) {
    plan.tables[table].boxes = place(model.tables[table], topology, own, loads);
    loads.add(plan.tables[table].boxes, model.tables[table]);
  }
  return plan;
}

}  // namespace shardrec::plan
