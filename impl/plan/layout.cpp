// Where the named sharding kinds put their boxes. Kinds that leave no choice come first; then the
// tables that one rank or one node takes, by falling weight, each to the least loaded.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "compute/profile_cache.h"
#include "core/error.h"
#include "core/tensor.h"
#include "plan/cuts.h"
#include "plan/names.h"
#include "plan/plan.h"
#include "plan/replication.h"
#include "plan/work.h"

namespace shardrec::plan {

namespace {

constexpr int64_t kReplicateUpTo = 64 << 10;

int64_t element_bytes(const Table& table) {
  return static_cast<int64_t>(core::dtype_size(table.dtype));
}

int64_t bytes_of(const Table& table) { return table.rows * table.dim * element_bytes(table); }

// What is to be spread: bytes, or expected time.
class Weights {
 public:
  Weights(const Model& model, const PlanOptions& options)
      : model_(model),
        bag_length_(options.bag_length),
        profile_(options.balance == SHARDREC_BALANCE_TIME ? &compute::memory_profile() : nullptr),
        features_(model.tables.size(), 0) {
    for (const Feature& feature : model.features) ++features_[static_cast<size_t>(feature.table)];
  }

  int64_t of_table(size_t table) const {
    const Table& shape = model_.tables[table];
    return of_box(table, {.rows = shape.rows, .cols = shape.dim});
  }
  int64_t of_box(size_t table, const Box& box) const {
    const Table& shape = model_.tables[table];
    if (profile_ == nullptr) return box.rows * box.cols * element_bytes(shape);
    const Optimizer& optimizer = shape.optimizer ? *shape.optimizer : model_.optimizer;
    const int64_t time = picoseconds_per_sample(shape, optimizer, features_[table], box.cols,
                                                bag_length_, *profile_);
    const double part = static_cast<double>(box.rows) / static_cast<double>(shape.rows);
    return std::max<int64_t>(1, std::llround(static_cast<double>(time) * part));
  }

 private:
  const Model& model_;
  const double bag_length_;
  const compute::MemoryProfile* profile_;  // nullptr: bytes
  std::vector<int64_t> features_;          // of each table
};

// Weight placed so far, by rank and by node. Among equals the lowest number is least.
class Loads {
 public:
  explicit Loads(const Topology& topology)
      : topology_(topology),
        rank_weight_(static_cast<size_t>(topology.ranks), 0),
        node_weight_(static_cast<size_t>(topology.nodes()), 0) {
    for (int32_t rank = 0; rank < topology.ranks; ++rank) ranks_.emplace(0, rank);
    for (int32_t node = 0; node < topology.nodes(); ++node) nodes_.emplace(0, node);
  }

  void add(size_t table, const std::vector<Box>& boxes, const Weights& weights) {
    for (const Box& box : boxes) {
      const int64_t weight = weights.of_box(table, box);
      const int32_t node = topology_.node_of(box.rank);
      move(ranks_, rank_weight_, box.rank, weight, 1);
      move(nodes_, node_weight_, node, weight, ranks_of_node(topology_, node).count);
    }
  }

  int32_t least_rank() const { return ranks_.begin()->second; }
  int32_t least_node() const { return nodes_.begin()->second; }

 private:
  using Order = std::set<std::pair<int64_t, int32_t>>;

  // Orders by weight per rank, so that a smaller last node takes its share and no more.
  static void move(Order& order, std::vector<int64_t>& weights, int32_t index, int64_t more,
                   int64_t ranks) {
    int64_t& now = weights[static_cast<size_t>(index)];
    auto entry = order.extract({now / ranks, index});
    now += more;
    entry.value() = {now / ranks, index};
    order.insert(std::move(entry));
  }

  Topology topology_;
  std::vector<int64_t> rank_weight_;
  std::vector<int64_t> node_weight_;
  Order ranks_;
  Order nodes_;
};

shardrec_sharding kind_of_table(const Model& model, const Topology& topology,
                                shardrec_sharding kind, size_t table, const Weights& weights,
                                int64_t total) {
  if (kind == SHARDREC_SHARDING_MIXED) return static_cast<shardrec_sharding>(1 + table % 7);
  if (kind != SHARDREC_SHARDING_AUTO) return kind;
  if (bytes_of(model.tables[table]) <= kReplicateUpTo) return SHARDREC_SHARDING_DATA_PARALLEL;
  if (weights.of_table(table) <= total / topology.ranks) return SHARDREC_SHARDING_TABLE_WISE;
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
  const Weights weights(model, options);
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += weights.of_table(i);

  Plan plan{topology, std::vector<TablePlan>(count)};
  Loads loads(topology);
  std::vector<std::pair<size_t, shardrec_sharding>> choices;
  for (size_t i = 0; i < count; ++i) {
    const shardrec_sharding own = kind_of_table(model, topology, kind, i, weights, total);
    if (leaves_choice(own)) {
      choices.emplace_back(i, own);
      continue;
    }
    plan.tables[i].replicated = own == SHARDREC_SHARDING_DATA_PARALLEL;
    if (plan.tables[i].replicated) {
      plan.tables[i].replication = choose_replication(model, i, topology.ranks, options);
    }
    plan.tables[i].boxes = place(model.tables[i], topology, own, loads);
    loads.add(i, plan.tables[i].boxes, weights);
  }
  std::sort(choices.begin(), choices.end(), [&](const auto& a, const auto& b) {
    const int64_t weight_a = weights.of_table(a.first);
    const int64_t weight_b = weights.of_table(b.first);
    return weight_a != weight_b ? weight_a > weight_b : a.first < b.first;
  });
  for (const auto& [table, own] : choices) {
    plan.tables[table].boxes = place(model.tables[table], topology, own, loads);
    loads.add(table, plan.tables[table].boxes, weights);
  }
  return plan;
}

}  // namespace shardrec::plan
