// Where the named sharding kinds put their boxes. Kinds that leave no choice come first; then the
// tables that one rank or one node takes, by falling weight, each to the least loaded.
#include "planner/planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "compute/probe/profile_cache.h"
#include "core/error.h"
#include "core/tensor.h"
#include "plan/cuts.h"
#include "plan/model/names.h"
#include "planner/kinds.h"
#include "planner/replication.h"
#include "planner/work.h"

namespace shardrec::planner {

namespace {

int64_t element_bytes(const Table& table) {
  return static_cast<int64_t>(core::dtype_size(table.dtype));
}

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
    return of_cells(table, shape.cells());
  }
  int64_t of_cells(size_t table, const plan::Rectangle& cells) const {
    const Table& shape = model_.tables[table];
    if (profile_ == nullptr) return cells.area() * element_bytes(shape);
    const Optimizer& optimizer = shape.optimizer ? *shape.optimizer : model_.optimizer;
    const int64_t time = picoseconds_per_sample(shape, optimizer, features_[table], cells.cols,
                                                bag_length_, *profile_);
    const double part = static_cast<double>(cells.rows) / static_cast<double>(shape.rows);
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
      const int64_t weight = weights.of_cells(table, box.cells);
      const int32_t node = topology_.node_of(box.rank);
      move(ranks_, rank_weight_, box.rank, weight, 1);
      move(nodes_, node_weight_, node, weight, topology_.ranks_of_node(node));
    }
  }

  // The `count` least loaded of these ranks, ascending by number.
  std::vector<int32_t> least_ranks(std::span<const int32_t> candidates, int64_t count) const {
    const bool all = candidates.size() == ranks_.size();
    return least(ranks_, count, [&](int32_t rank) {
      return all || std::binary_search(candidates.begin(), candidates.end(), rank);
    });
  }
  // The same of the nodes that have ranks of the pool.
  std::vector<int32_t> least_nodes(const plan::RankPool& pool, int64_t count) const {
    return least(nodes_, count, [&](int32_t node) { return !pool.of_node(node).empty(); });
  }

 private:
  using Order = std::set<std::pair<int64_t, int32_t>>;

  template <class Fits>
  static std::vector<int32_t> least(const Order& order, int64_t count, const Fits& fits) {
    std::vector<int32_t> chosen;
    for (auto entry = order.begin(); entry != order.end() && std::ssize(chosen) < count; ++entry) {
      if (fits(entry->second)) chosen.push_back(entry->second);
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

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

// Where a table may live, and what it has been given.
struct Placing {
  const Table& table;
  const plan::RankPool& pool;
  shardrec_sharding kind;

  int64_t column_parts_over(size_t candidates) const {
    return plan::column_parts(table.dim, static_cast<int64_t>(candidates),
                              table.limits.min_columns);
  }
};

// Does the place of its boxes depend on the loads?
bool leaves_choice(const Placing& placing) {
  switch (placing.kind) {
    case SHARDREC_SHARDING_TABLE_WISE:
    case SHARDREC_SHARDING_TABLE_ROW_WISE:
    case SHARDREC_SHARDING_TABLE_COLUMN_WISE:
      return true;
    case SHARDREC_SHARDING_COLUMN_WISE:
      return placing.column_parts_over(placing.pool.ranks().size()) <
             std::ssize(placing.pool.ranks());
    case SHARDREC_SHARDING_GRID: {
      const size_t nodes = placing.pool.nodes().size();
      return placing.column_parts_over(nodes) < static_cast<int64_t>(nodes);
    }
    default:
      return false;
  }
}

std::vector<Box> columns_over(const Placing& placing, std::span<const int32_t> candidates,
                              const Loads& loads) {
  const int64_t parts = placing.column_parts_over(candidates.size());
  if (parts == std::ssize(candidates)) return plan::cut_columns(placing.table, candidates);
  return plan::cut_columns(placing.table, loads.least_ranks(candidates, parts));
}

// The boxes of a table, given the loads so far.
std::vector<Box> place(const Placing& placing, const Loads& loads) {
  const Table& table = placing.table;
  const plan::RankPool& pool = placing.pool;
  const auto node = [&] { return pool.of_node(loads.least_nodes(pool, 1).front()); };
  switch (placing.kind) {
    case SHARDREC_SHARDING_TABLE_WISE:
      return {{loads.least_ranks(pool.ranks(), 1).front(), table.cells()}};
    case SHARDREC_SHARDING_ROW_WISE:
      return plan::cut_rows(table, pool.ranks());
    case SHARDREC_SHARDING_COLUMN_WISE:
      return columns_over(placing, pool.ranks(), loads);
    case SHARDREC_SHARDING_TABLE_ROW_WISE:
      return plan::cut_rows(table, node());
    case SHARDREC_SHARDING_TABLE_COLUMN_WISE:
      return columns_over(placing, node(), loads);
    case SHARDREC_SHARDING_GRID:
      return plan::cut_grid(
          table, pool, loads.least_nodes(pool, placing.column_parts_over(pool.nodes().size())));
    default:
      return {};
  }
}

}  // namespace

Plan make_plan(const Model& model, const Topology& topology, const PlanOptions& options) {
  const shardrec_sharding kind = options.sharding;
  plan::check_topology(topology);
  if (!plan::value_of<shardrec_sharding>(plan::name_of(kind))) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("there is no sharding kind ", static_cast<int>(kind),
                              "; accepted: ", plan::names_of<shardrec_sharding>()));
  }
  const size_t count = model.tables.size();
  const Weights weights(model, options);
  int64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += weights.of_table(i);

  Plan plan{topology, std::vector<TablePlan>(count)};
  Loads loads(topology);
  const plan::RankPool everyone(topology, {});
  std::vector<plan::RankPool>
      restricted;  // never grows beyond what is reserved: places point into it
  restricted.reserve(count);
  std::vector<std::pair<size_t, Placing>> choices;
  for (size_t i = 0; i < count; ++i) {
    const Table& table = model.tables[i];
    const plan::RankPool& pool = table.limits.ranks.is_all()
                                     ? everyone
                                     : restricted.emplace_back(topology, table.limits.ranks);
    require_ranks(table, topology, pool);
    const Placing own{
        table, pool,
        choose_kind(model, i, pool, options, weights.of_table(i) <= total / topology.ranks)};
    if (leaves_choice(own)) {
      choices.emplace_back(i, own);
      continue;
    }
    plan.tables[i].replicated = own.kind == SHARDREC_SHARDING_DATA_PARALLEL;
    if (plan.tables[i].replicated) {
      plan.tables[i].replication =
          choose_replication(model, i, std::max(topology.ranks, options.mesh_ranks), options);
    }
    plan.tables[i].boxes = place(own, loads);
    loads.add(i, plan.tables[i].boxes, weights);
  }
  std::vector<size_t> order(choices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const int64_t weight_a = weights.of_table(choices[a].first);
    const int64_t weight_b = weights.of_table(choices[b].first);
    return weight_a != weight_b ? weight_a > weight_b : a < b;
  });
  for (const size_t next : order) {
    const auto& [table, own] = choices[next];
    plan.tables[table].boxes = place(own, loads);
    loads.add(table, plan.tables[table].boxes, weights);
  }
  return plan;
}

}  // namespace shardrec::planner
