// REPLICA_SYNC EXACT and SHARDED: every replica is trained by the ids and gradients of all ranks of the mesh, with the bits
// of one group of so many ranks, whatever the optimizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "embedding/scenario.h"
#include "embedding/variations.h"
#include "mesh_deal.h"
#include "mesh_rank.h"
#include "shardrec/shardrec.h"

namespace shardrec::test {
namespace {

constexpr MeshShape kShapes[] = {{2, 1}, {4, 2}, {8, 2},
                                 {8, 4}, {6, 3}, {6, 3, SHARDREC_PLACEMENT_INTRA_NODE_SHARD}};

constexpr NamedOptimizer kOptimizers[] = {
    {"SGD", SHARDREC_OPTIMIZER_SGD},
    {"AdaGrad", SHARDREC_OPTIMIZER_ADAGRAD},
    {"RowwiseAdaGrad", SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD},
    {"Adam", SHARDREC_OPTIMIZER_ADAM},
    {"PartialRowwiseAdam", SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM},
    {"Lamb", SHARDREC_OPTIMIZER_LAMB},
    {"PartialRowwiseLamb", SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB},
    {"LarsSGD", SHARDREC_OPTIMIZER_LARS_SGD}};

constexpr MeshShape kSharedShapes[] = {
    {2, 1}, {4, 2}, {8, 2}, {6, 3}, {6, 3, SHARDREC_PLACEMENT_INTRA_NODE_SHARD}};

using Case = std::tuple<MeshShape, NamedOptimizer, shardrec_replica_sync>;

class Exact : public ::testing::TestWithParam<Case> {
 protected:
  MeshShape shape() const { return std::get<0>(GetParam()); }

  Scenario scenario() {
    Scenario made = random_scenario(random_, 10);
    vary_optimizers(made, random_, std::get<1>(GetParam()).kind);
    if (random_() % 2 == 0) add_sequences(made, random_);
    if (random_() % 2 == 0) add_stray_ids(made, random_);
    if (random_() % 2 == 0) add_accumulation(made, random_);
    made.divisor = shape().group;
    return made;
  }
  // Tables are cut at random, and some are replicated.
  Deal on_mesh(const Scenario& made) {
    Deal deal = random_mesh_deal(made, random_, shape());
    deal.sync = std::get<2>(GetParam());
    deal.sync_every = 3;
    deal.hierarchical = false;
    return deal;
  }
  // Without a mesh: one group of all ranks, the first ones of which have the boxes.
  Deal in_one_group(const Deal& mesh) const {
    Deal deal = mesh;
    deal.ranks = shape().world;
    deal.replicas = 1;
    return deal;
  }

  std::mt19937_64 random_{9000 + static_cast<uint64_t>(shape().world) * 10 +
                          static_cast<uint64_t>(shape().group) +
                          100 * static_cast<uint64_t>(std::get<1>(GetParam()).kind)};
};

// train() compares the copies that the ranks read.
TEST_P(Exact, TablesStatesAndOutputsAreThoseOfOneGroupOfAllRanks) {
  for (const auto divisor : {SHARDREC_DIVISOR_RANKS, SHARDREC_DIVISOR_SAMPLES,
                             SHARDREC_DIVISOR_CUSTOM, SHARDREC_DIVISOR_NONE}) {
    SCOPED_TRACE(testing::Message() << "divisor " << divisor);
    const Scenario made = scenario();
    Deal mesh = on_mesh(made);
    mesh.divisor = divisor;
    const Outcome run = train(made, mesh);
    if (HasFatalFailure()) return;
    Scenario of_all = made;  // as many times the custom divisor as there are sharding groups
    of_all.divisor *= mesh.replicas;
    const Outcome whole = train(of_all, in_one_group(mesh));
    if (HasFatalFailure()) return;
    EXPECT_EQ(run.tables, whole.tables);
    EXPECT_EQ(run.states, whole.states);
    EXPECT_EQ(run.outputs, whole.outputs);
    EXPECT_EQ(run.sequences, whole.sequences);
    EXPECT_EQ(run.weight_gradients, whole.weight_gradients);
  }
}

// Of one rank: what it looks up, steps with and writes differs from what others do.
TEST(ExactReplicas, AreEqualAfterEachStepAndRowsAreWrittenInAllOfThem) {
  for (const auto& way :
       {std::pair{SHARDREC_SHARDING_ROW_WISE, SHARDREC_REPLICA_SYNC_EXACT},
        std::pair{SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_REPLICA_SYNC_EXACT},
        std::pair{SHARDREC_SHARDING_ROW_WISE, SHARDREC_REPLICA_SYNC_SHARDED},
        std::pair{SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_REPLICA_SYNC_SHARDED}}) {
    const auto sharding = way.first;
    const auto sync = way.second;
    SCOPED_TRACE(testing::Message() << "sharding " << sharding << ", REPLICA_SYNC " << sync);
    run_ranks(6, 6, [&](int rank, shardrec_comm* comm) {
      MeshRank own(comm, {.sharding = sharding, .group = 2, .sync = sync});
      own.create();
      ASSERT_EQ(own.status(), SHARDREC_OK) << shardrec_last_error();
      for (int step = 0; step < 4; ++step) {
        own.step((3 * rank + step) % MeshRank::kRows, 0.5F + static_cast<float>(rank));
        SR_EXPECT_OK(shardrec_collection_check_replicas(own.tables()));
      }
      const std::vector<float> trained = own.read(SHARDREC_TABLE_WEIGHTS);
      SR_EXPECT_OK(shardrec_collection_sync_replicas(own.tables()));
      SR_EXPECT_OK(shardrec_collection_sync_begin(own.tables()));
      own.step(rank, 0);
      SR_EXPECT_OK(shardrec_collection_sync_wait(own.tables()));
      EXPECT_EQ(own.read(SHARDREC_TABLE_WEIGHTS), trained) << "equal rows are not averaged";

      // Rank 4, of another replica than rank 0, writes two rows; the others none.
      std::vector<float> rows(static_cast<size_t>(2 * MeshRank::kDim), 7.0F);
      const int64_t count = rank == 4 ? 2 : 0;
      const shardrec_tensor given = matrix(rows.data(), count, MeshRank::kDim);
      SR_EXPECT_OK(shardrec_collection_write_range(own.tables(), 0, SHARDREC_TABLE_WEIGHTS, 5,
                                                   count, &given));
      std::vector<int64_t> ids = rank == 1 ? std::vector<int64_t>{12} : std::vector<int64_t>{};
      const shardrec_tensor list = vector_of(ids);
      std::vector<float> row(ids.size() * static_cast<size_t>(MeshRank::kDim), 8.0F);
      const shardrec_tensor values =
          matrix(row.data(), static_cast<int64_t>(ids.size()), MeshRank::kDim);
      SR_EXPECT_OK(
          shardrec_collection_write_rows(own.tables(), 0, SHARDREC_TABLE_WEIGHTS, &list, &values));
      const std::vector<float> read = own.read(SHARDREC_TABLE_WEIGHTS);
      for (int64_t i = 0; i < MeshRank::kRows; ++i) {
        const float wanted = i == 5 || i == 6 ? 7.0F
                             : i == 12        ? 8.0F
                                              : trained[static_cast<size_t>(i * MeshRank::kDim)];
        EXPECT_EQ(read[static_cast<size_t>(i * MeshRank::kDim)], wanted) << "row " << i;
      }
      SR_EXPECT_OK(shardrec_collection_check_replicas(own.tables()));
      own.destroy();
    });
  }
}

TEST(ExactReplicas, RanksThatDifferInItAreToldAndPartialSumsAreNotAddedUpOnNodes) {
  run_ranks(4, 4, [&](int rank, shardrec_comm* comm) {
    const auto sync = rank == 2 ? SHARDREC_REPLICA_SYNC_TOUCHED : SHARDREC_REPLICA_SYNC_EXACT;
    MeshRank differs(comm, {.sync = sync});
    EXPECT_EQ(differs.create_collection(), SHARDREC_DISAGREEMENT);
    EXPECT_NE(std::string(shardrec_last_error()).find("REPLICA_SYNC"), std::string::npos)
        << shardrec_last_error();
    MeshRank sums(
        comm, {.sync = SHARDREC_REPLICA_SYNC_EXACT, .options = [](shardrec_options* options) {
                 SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_HIERARCHICAL, 1));
               }});
    EXPECT_EQ(sums.create_collection(), SHARDREC_UNSUPPORTED);
    EXPECT_NE(std::string(shardrec_last_error()).find("REPLICA_SYNC EXACT"), std::string::npos)
        << shardrec_last_error();
  });
}

std::string exact_name_of(const ::testing::TestParamInfo<Case>& test) {
  const auto& [shape, optimizer, sync] = test.param;
  return name_of(shape) + optimizer.name;
}

INSTANTIATE_TEST_SUITE_P(Runs, Exact,
                         ::testing::Combine(::testing::ValuesIn(kShapes),
                                            ::testing::ValuesIn(kOptimizers),
                                            ::testing::Values(SHARDREC_REPLICA_SYNC_EXACT)),
                         exact_name_of);
INSTANTIATE_TEST_SUITE_P(SharedRuns, Exact,
                         ::testing::Combine(::testing::ValuesIn(kSharedShapes),
                                            ::testing::ValuesIn(kOptimizers),
                                            ::testing::Values(SHARDREC_REPLICA_SYNC_SHARDED)),
                         exact_name_of);

}  // namespace
}  // namespace shardrec::test
