// 2D parallel: replicas of sharded tables, and their averages.
#include "replica/mesh.h"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int64_t kRows = 13;
constexpr int64_t kDim = 6;

TEST(Mesh, PlacesAreThoseOfTheMatrixOfReplicasAndShards) {
  // 8 ranks, sharding groups of 4: neighbours are replicas of each other, or shards.
  for (int rank = 0; rank < 8; ++rank) {
    const auto sync = replica::place_of(rank, 8, 4, SHARDREC_PLACEMENT_INTRA_NODE_SYNC);
    EXPECT_EQ(sync.sharding_group, rank % 2);
    EXPECT_EQ(sync.replica_group, rank / 2);
    const auto shard = replica::place_of(rank, 8, 4, SHARDREC_PLACEMENT_INTRA_NODE_SHARD);
    EXPECT_EQ(shard.sharding_group, rank / 4);
    EXPECT_EQ(shard.replica_group, rank % 4);
  }
}

struct Arrangement {
  shardrec_placement placement = SHARDREC_PLACEMENT_INTRA_NODE_SYNC;
  shardrec_sharding sharding = SHARDREC_SHARDING_ROW_WISE;
  int group = 2;
  int64_t seed = 5;
};

// One rank's model and its collection on a mesh.
class Rank {
 public:
  Rank(shardrec_comm* comm, const Arrangement& setup) {
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_MESH, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_PLACEMENT, setup.placement));
    status_ = shardrec_mesh_create(comm, setup.group, options, &mesh_);
    shardrec_options_destroy(&options);
    if (status_ != SHARDREC_OK) return;
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model_));
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER,
                                          SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD));
    SR_EXPECT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, 0.1));
    SR_EXPECT_OK(shardrec_model_set_optimizer(model_, options));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_model_add_table(model_, "t", kRows, kDim, nullptr, nullptr));
    SR_EXPECT_OK(shardrec_model_add_feature(model_, 0, "f", SHARDREC_POOLING_SUM));
    shardrec_topology* topology = nullptr;
    SR_EXPECT_OK(shardrec_topology_create(setup.group, setup.group, &topology));
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, setup.sharding));
    SR_EXPECT_OK(shardrec_plan_create(model_, topology, options, &plan_));
    shardrec_options_destroy(&options);
    shardrec_topology_destroy(&topology);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SEED, setup.seed));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 1));
    status_ = shardrec_collection_create_on_mesh(mesh_, model_, plan_, options, &tables_);
    shardrec_options_destroy(&options);
    if (status_ != SHARDREC_OK) return;
    SR_EXPECT_OK(shardrec_lookup_create(tables_, nullptr, &lookup_));
    SR_EXPECT_OK(shardrec_mesh_place(mesh_, nullptr, nullptr, &replica_, nullptr));
  }
  ~Rank() {
    shardrec_lookup_destroy(&lookup_);
    shardrec_collection_destroy(&tables_);
    shardrec_plan_destroy(&plan_);
    shardrec_model_destroy(&model_);
    shardrec_mesh_destroy(&mesh_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  shardrec_status status() const { return status_; }
  int32_t replica() const { return replica_; }
  shardrec_mesh* mesh() { return mesh_; }
  shardrec_collection* tables() { return tables_; }

  void step(int64_t id, float slope) {
    std::vector<int64_t> values = {id, (id + 5) % kRows};
    std::vector<int64_t> lengths = {2};
    const shardrec_tensor v = vector_of(values);
    const shardrec_tensor l = vector_of(lengths);
    SR_OK(shardrec_lookup_begin(lookup_, 1, &v, &l, nullptr));
    std::vector<float> out(kDim);
    const shardrec_tensor o = matrix(out.data(), 1, kDim);
    SR_OK(shardrec_lookup_forward(lookup_, 0, &o));
    std::vector<float> gradient(kDim);
    for (size_t c = 0; c < gradient.size(); ++c) gradient[c] = slope * static_cast<float>(c + 1);
    const shardrec_tensor g = matrix(gradient.data(), 1, kDim);
    SR_OK(shardrec_lookup_set_gradient(lookup_, 0, &g));
    SR_OK(shardrec_lookup_backward(lookup_));
  }

  std::vector<float> read(shardrec_table_part part) {
    const int64_t columns = part == SHARDREC_TABLE_WEIGHTS ? kDim : 1;
    std::vector<float> values(static_cast<size_t>(kRows * columns));
    const shardrec_tensor into = matrix(values.data(), kRows, columns);
    SR_EXPECT_OK(shardrec_collection_read(tables_, 0, part, 0, kRows, &into));
    return values;
  }

 private:
  shardrec_status status_ = SHARDREC_OK;
  int32_t replica_ = -1;
  shardrec_mesh* mesh_ = nullptr;
  shardrec_model* model_ = nullptr;
  shardrec_plan* plan_ = nullptr;
  shardrec_collection* tables_ = nullptr;
  shardrec_lookup* lookup_ = nullptr;
};

class Replicas : public ::testing::TestWithParam<Arrangement> {};

TEST_P(Replicas, StartEqualDriftApartAndAreTheMeanAfterASync) {
  const Arrangement setup = GetParam();
  const int ranks = setup.group * 3;
  std::mutex mutex;
  // By replica: initial weights; weights and sums before the sync; after it.
  std::array<std::vector<float>, 3> initial;
  std::array<std::array<std::vector<float>, 2>, 3> before;
  std::array<std::array<std::vector<float>, 2>, 3> after;
  run_ranks(ranks, setup.group, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    Rank one(comm, setup);
    SR_OK(one.status());
    const auto start = one.read(SHARDREC_TABLE_WEIGHTS);
    one.step(rank % kRows, 0.5F + static_cast<float>(rank));
    one.step((rank + 3) % kRows, -0.25F);
    const std::array drifted = {one.read(SHARDREC_TABLE_WEIGHTS), one.read(SHARDREC_TABLE_STATE)};
    SR_OK(shardrec_collection_sync(one.tables()));
    const std::array synced = {one.read(SHARDREC_TABLE_WEIGHTS), one.read(SHARDREC_TABLE_STATE)};
    one.step(rank % kRows, 1);  // life goes on
    const std::lock_guard lock(mutex);
    const auto r = static_cast<size_t>(one.replica());
    initial[r] = start;
    before[r] = drifted;
    after[r] = synced;
  });
  EXPECT_EQ(initial[0], initial[1]);
  EXPECT_EQ(initial[0], initial[2]);
  EXPECT_NE(before[0][0], before[1][0]);
  for (size_t part = 0; part < 2; ++part) {
    EXPECT_EQ(after[0][part], after[1][part]);
    EXPECT_EQ(after[0][part], after[2][part]);
    for (size_t i = 0; i < after[0][part].size(); ++i) {
      const double mean =
          (double{before[0][part][i]} + before[1][part][i] + before[2][part][i]) / 3;
      EXPECT_NEAR(after[0][part][i], mean, 1e-6 * (1 + std::abs(mean))) << part << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Replicas,
    ::testing::Values(Arrangement{}, Arrangement{.placement = SHARDREC_PLACEMENT_INTRA_NODE_SHARD},
                      Arrangement{.sharding = SHARDREC_SHARDING_COLUMN_WISE},
                      Arrangement{.sharding = SHARDREC_SHARDING_GRID, .group = 4},
                      Arrangement{.sharding = SHARDREC_SHARDING_TABLE_WISE, .group = 1}));

TEST(Mesh, WhatDiffersIsAMismatchOnAllRanks) {
  run_ranks(4, 2, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
    const Rank other_seed(comm, {.seed = rank == 3 ? 6 : 5});
    EXPECT_EQ(other_seed.status(), SHARDREC_MISMATCH);
    int64_t culprit = -1;
    shardrec_last_error_i64(SHARDREC_ERROR_RANK, &culprit);
    EXPECT_EQ(culprit, 3);
    const Rank again(comm, {});
    EXPECT_EQ(again.status(), SHARDREC_OK) << shardrec_last_error();
  });
}

TEST(Mesh, GroupsThatDoNotDivideTheRanksAreRefused) {
  run_ranks(4, 2, [&](int, shardrec_comm* comm) {
    for (const int group : {0, -1, 3, 5}) {
      shardrec_mesh* mesh = nullptr;
      EXPECT_EQ(shardrec_mesh_create(comm, group, nullptr, &mesh), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(mesh, nullptr);
    }
    SR_EXPECT_OK(shardrec_comm_barrier(comm));
  });
}

TEST(Mesh, ReplicatedTablesAreUnsupportedWithTheirName) {
  run_ranks(4, 2, [&](int, shardrec_comm* comm) {
    const Rank rank(comm, {.sharding = SHARDREC_SHARDING_DATA_PARALLEL});
    EXPECT_EQ(rank.status(), SHARDREC_UNSUPPORTED);
    EXPECT_NE(std::string(shardrec_last_error()).find("\"t\""), std::string::npos);
  });
}

TEST(Mesh, StepsThatDifferAreAMismatchAtTheSync) {
  std::barrier together(4);
  run_ranks(4, 2, [&](int rank, shardrec_comm* comm) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    Rank one(comm, {});
    SR_EXPECT_OK(one.status());
    if (one.replica() == 1) one.step(rank, 1);
    EXPECT_EQ(shardrec_collection_sync(one.tables()), SHARDREC_MISMATCH) << shardrec_last_error();
    together.arrive_and_wait();
  });
}

TEST(Mesh, ACommunicatorThatIsAbortedEndsItsMeshForAll) {
  // A rank that leaves at once would be a second reason, which may be the first to be seen.
  std::barrier together(4);
  run_ranks(4, 2, [&](int rank, shardrec_comm* comm) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    Rank one(comm, {});
    SR_EXPECT_OK(one.status());
    together.arrive_and_wait();
    if (rank == 2) shardrec_comm_abort(comm, "enough");
    EXPECT_EQ(shardrec_collection_sync(one.tables()), SHARDREC_ABORTED) << shardrec_last_error();
    together.arrive_and_wait();
  });
}

TEST(Mesh, ACollectionWithoutAMeshHasNothingToSync) {
  run_ranks(1, 1, [&](int, shardrec_comm* comm) {
    Rank one(comm, {.sharding = SHARDREC_SHARDING_TABLE_WISE, .group = 1});
    SR_OK(one.status());
    SR_EXPECT_OK(shardrec_collection_sync(one.tables()));
  });
}

}  // namespace
}  // namespace shardrec::test
