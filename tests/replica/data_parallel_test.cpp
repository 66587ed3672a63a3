// Replicated (data-parallel) tables on a mesh: the gradients of all its ranks train them, whichever sharding group a rank
// is in, as those of one group of so many ranks do; the tables that are cut train as if they were alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "embedding/scenario.h"
#include "embedding/variations.h"
#include "mesh_deal.h"

namespace shardrec::test {
namespace {

using Case = std::tuple<MeshShape, shardrec_replication, NamedOptimizer>;

constexpr MeshShape kShapes[] = {{3, 1}, {4, 2}, {8, 2},
                                 {6, 2}, {6, 3}, {6, 3, SHARDREC_PLACEMENT_INTRA_NODE_SHARD}};

bool is_replicated(size_t table) { return table % 2 == 0; }

class DataParallel : public ::testing::TestWithParam<Case> {
 protected:
  MeshShape shape() const { return std::get<0>(GetParam()); }
  shardrec_replication way() const { return std::get<1>(GetParam()); }

  // Of two tables at least, with features of a replicated and of a cut one.
  Scenario scenario() {
    const auto uses = [](const Scenario& made, bool replicated) {
      return std::ranges::any_of(made.features, [&](const FeatureSpec& feature) {
        return is_replicated(static_cast<size_t>(feature.table)) == replicated;
      });
    };
    Scenario made;
    do {
      made = random_scenario(random_, 6);
    } while (!uses(made, true) || !uses(made, false));
    vary_optimizers(made, random_, std::get<2>(GetParam()).kind);
    if (random_() % 2 == 0) add_sequences(made, random_);
    if (random_() % 2 == 0) add_stray_ids(made, random_);
    if (random_() % 2 == 0) add_accumulation(made, random_);
    made.divisor = shape().world;
    return made;
  }
  // On the mesh. Its cut tables are cut at random.
  Deal on_mesh(const Scenario& made) {
    Deal deal = random_mesh_deal(made, random_, shape());
    deal.sync_every = 2;
    deal.divisor = SHARDREC_DIVISOR_RANKS;
    for (size_t t = 0; t < deal.plan.size(); ++t) {
      if (is_replicated(t)) {
        deal.plan[t] = {.replicated = true, .boxes = {}, .replication = way()};
      } else if (deal.plan[t].replicated) {
        deal.plan[t] = on_the_last_rank(made.tables[t]);
      }
    }
    return deal;
  }
  TablePlanSpec on_the_last_rank(const TableSpec& table) const {
    return {.replicated = false, .boxes = {{shape().group - 1, 0, table.rows, 0, table.dim}}};
  }
  // Without a mesh: one group of all ranks, with the batches of each.
  Deal in_one_group(const Scenario& made, const Deal& mesh) const {
    Deal deal = mesh;
    deal.ranks = shape().world;
    deal.replicas = 1;
    for (size_t t = 0; t < deal.plan.size(); ++t) {
      if (!is_replicated(t)) deal.plan[t] = on_the_last_rank(made.tables[t]);
    }
    return deal;
  }
  // On the mesh, but no table is replicated: each sharding group is a collection of its own.
  Deal all_cut(const Scenario& made, const Deal& mesh) const {
    Deal deal = mesh;
    for (size_t t = 0; t < deal.plan.size(); ++t) {
      if (is_replicated(t)) deal.plan[t] = on_the_last_rank(made.tables[t]);
    }
    return deal;
  }

  std::mt19937_64 random_{7000 + static_cast<uint64_t>(shape().world) * 10 +
                          static_cast<uint64_t>(way()) + 100 * std::get<2>(GetParam()).kind};
};

// Tables, states, outputs of the features and gradients of their ids' weights, of those tables that are replicated or
// of those that are not.
void expect_same_tables(const Scenario& made, const Outcome& a, const Outcome& b, bool replicated) {
  for (size_t t = 0; t < made.tables.size(); ++t) {
    if (is_replicated(t) != replicated) continue;
    EXPECT_EQ(a.tables[t], b.tables[t]) << "table " << t;
    EXPECT_EQ(a.states[t], b.states[t]) << "table " << t;
  }
  for (size_t f = 0; f < made.features.size(); ++f) {
    const auto t = static_cast<size_t>(made.features[f].table);
    if (is_replicated(t) != replicated) continue;
    const auto column = made.features[f].sequence ? 0 : made.column(f);
    const auto values = [&](const Outcome& of, size_t step, size_t sample) {
      if (made.features[f].sequence) return of.sequences[step][sample][f];
      const auto first = of.outputs[step][sample].begin() + column;
      return std::vector<float>(first, first + made.tables[t].dim);
    };
    for (size_t step = 0; step < made.steps.size(); ++step) {
      for (size_t sample = 0; sample < made.steps[step].size(); ++sample) {
        ASSERT_EQ(values(a, step, sample), values(b, step, sample))
            << "feature " << f << " step " << step << " sample " << sample;
        if (a.weight_gradients[step][sample].empty()) continue;
        ASSERT_EQ(a.weight_gradients[step][sample][f], b.weight_gradients[step][sample][f])
            << "feature " << f << " step " << step << " sample " << sample;
      }
    }
  }
}

// train() compares the copies of all ranks.
TEST_P(DataParallel, TablesAreThoseOfOneGroupOfAllRanks) {
  const Scenario made = scenario();
  const Deal mesh = on_mesh(made);
  const Outcome run = train(made, mesh);
  if (HasFatalFailure()) return;
  expect_same_tables(made, run, train(made, in_one_group(made, mesh)), true);
}

TEST_P(DataParallel, TablesThatAreCutTrainAsIfTheyWereAlone) {
  const Scenario made = scenario();
  Deal mesh = on_mesh(made);
  for (const auto divisor : {SHARDREC_DIVISOR_RANKS, SHARDREC_DIVISOR_SAMPLES,
                             SHARDREC_DIVISOR_CUSTOM, SHARDREC_DIVISOR_NONE}) {
    mesh.divisor = divisor;
    const Outcome run = train(made, mesh);
    if (HasFatalFailure()) return;
    expect_same_tables(made, run, train(made, all_cut(made, mesh)), false);
    if (divisor == SHARDREC_DIVISOR_RANKS) continue;
    Scenario of_all = made;  // as many times the custom divisor as there are sharding groups
    of_all.divisor *= mesh.replicas;
    expect_same_tables(made, run, train(of_all, in_one_group(made, mesh)), true);
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& test) {
  const auto& [shape, way, optimizer] = test.param;
  constexpr const char* kWays[] = {"Auto", "Samples", "Rows", "Dense"};
  return name_of(shape) + kWays[way] + optimizer.name;
}

constexpr NamedOptimizer kOptimizers[] = {{"SGD", SHARDREC_OPTIMIZER_SGD},
                                          {"AdaGrad", SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD},
                                          {"Adam", SHARDREC_OPTIMIZER_ADAM}};

INSTANTIATE_TEST_SUITE_P(Runs, DataParallel,
                         ::testing::Combine(::testing::ValuesIn(kShapes),
                                            ::testing::Values(SHARDREC_REPLICATION_SAMPLES,
                                                              SHARDREC_REPLICATION_ROWS,
                                                              SHARDREC_REPLICATION_DENSE),
                                            ::testing::ValuesIn(kOptimizers)),
                         name_of);

}  // namespace
}  // namespace shardrec::test
