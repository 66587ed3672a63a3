// 2D parallel: replicas of sharded tables, and their averages.
#include "training/mesh.h"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cmath>
#include <mutex>
#include <string>
#include <vector>

#include "core/threads.h"
#include "objects/collection_object.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

TEST(Mesh, PlacesAreThoseOfTheMatrixOfReplicasAndShards) {
  // 8 ranks, sharding groups of 4: neighbours are replicas of each other, or shards.
  for (int rank = 0; rank < 8; ++rank) {
    const auto sync = training::mesh_place_of(rank, 8, 4, SHARDREC_PLACEMENT_INTRA_NODE_SYNC);
    EXPECT_EQ(sync.sharding_group, rank % 2);
    EXPECT_EQ(sync.replica_group, rank / 2);
    const auto shard = training::mesh_place_of(rank, 8, 4, SHARDREC_PLACEMENT_INTRA_NODE_SHARD);
    EXPECT_EQ(shard.sharding_group, rank / 4);
    EXPECT_EQ(shard.replica_group, rank % 4);
  }
}

// A rank with its collection, or the status that there is none for.
class Rank : public MeshRank {
 public:
  Rank(shardrec_comm* comm, const Arrangement& setup) : MeshRank(comm, setup) {
    if (status() == SHARDREC_OK) create();
  }
};

TEST(ReplicaSync, IsRefusedWhileGradientsAreUnderWay) {
  run_ranks(4, 2, [](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    Rank one(comm, {.group = 2});
    SR_OK(one.status());
    SR_OK(one.prepare_step(rank, 1));
    SR_OK(shardrec_lookup_send_gradients(one.lookup(), SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(shardrec_collection_sync_replicas(one.tables()), SHARDREC_INVALID_STATE);
    EXPECT_NE(std::string(shardrec_last_error()).find("under way"), std::string::npos)
        << shardrec_last_error();
    SR_OK(shardrec_lookup_backward(one.lookup(), SHARDREC_UPDATE_APPLY));
    SR_OK(shardrec_collection_sync_replicas(one.tables()));
  });
}

int64_t step_of(Rank& one) {
  int64_t step = -1;
  SR_EXPECT_OK(shardrec_collection_step(one.tables(), &step));
  return step;
}

// Else replicas would be at different steps, which a sync refuses.
TEST(ReplicaSync, AStepThatOneShardingGroupDoesNotTakeIsTakenByNone) {
  for (const auto placement :
       {SHARDREC_PLACEMENT_INTRA_NODE_SYNC, SHARDREC_PLACEMENT_INTRA_NODE_SHARD}) {
    Arrangement setup{.placement = placement, .group = 2};
    setup.options = [](shardrec_options* options) {
      SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_NON_FINITE, "skip"));
    };
    run_ranks(4, 2, [&](int rank, shardrec_comm* comm) {
      SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
      Rank one(comm, setup);
      SR_OK(one.status());
      one.step(rank, 1);
      const auto before = one.read(SHARDREC_TABLE_WEIGHTS);
      const auto expect_untouched = [&] {
        EXPECT_EQ(step_of(one), 1);
        EXPECT_EQ(one.read(SHARDREC_TABLE_WEIGHTS), before);
      };
      one.step(rank, rank == 0 ? INFINITY : 1);
      expect_untouched();
      // What a group refuses, it alone is told.
      SR_OK(one.prepare_step(rank, 1));
      const shardrec_status status = shardrec_lookup_backward(
          one.lookup(), rank == 0 ? SHARDREC_UPDATE_ACCUMULATE : SHARDREC_UPDATE_APPLY);
      EXPECT_EQ(status, one.replica() == 0 ? SHARDREC_INVALID_BATCH : SHARDREC_OK);
      expect_untouched();
      one.step(rank, 1);
      EXPECT_EQ(step_of(one), 2);
      EXPECT_NE(one.read(SHARDREC_TABLE_WEIGHTS), before);
      SR_OK(shardrec_collection_sync_replicas(one.tables()));
    });
  }
}

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
    one.step(rank % MeshRank::kRows, 0.5F + static_cast<float>(rank));
    one.step((rank + 3) % MeshRank::kRows, -0.25F);
    const std::array drifted = {one.read(SHARDREC_TABLE_WEIGHTS), one.read(SHARDREC_TABLE_STATE)};
    SR_OK(shardrec_collection_sync_replicas(one.tables()));
    const std::array synced = {one.read(SHARDREC_TABLE_WEIGHTS), one.read(SHARDREC_TABLE_STATE)};
    one.step(rank % MeshRank::kRows, 1);  // life goes on
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
    EXPECT_EQ(other_seed.status(), SHARDREC_DISAGREEMENT);
    int64_t failed_rank = -1;
    shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank);
    EXPECT_EQ(failed_rank, 3);
    const Rank again(comm, {});
    EXPECT_EQ(again.status(), SHARDREC_OK) << shardrec_last_error();
  });
}

TEST(Mesh, WhatOneShardingGroupRefusesAllRanksRefuse) {
  run_ranks(4, 2, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
    // The number of lookups is compared in the groups: rank 3 is the second of its own.
    const Rank other_lookups(comm, {.lookups = rank == 3 ? 3 : 2});
    EXPECT_EQ(other_lookups.status(), SHARDREC_DISAGREEMENT) << shardrec_last_error();
    int64_t failed_rank = -1;
    shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank);
    EXPECT_EQ(failed_rank, 3);
    const Rank again(comm, {});
    EXPECT_EQ(again.status(), SHARDREC_OK) << shardrec_last_error();
  });
}

TEST(Mesh, TheProcessorsAreSharedByTheRanksOfAllGroups) {
  run_ranks(2, 2, [&](int, shardrec_comm* comm) {
    Rank one(comm, {.sharding = SHARDREC_SHARDING_TABLE_WISE, .group = 1, .default_threads = true});
    SR_OK(one.status());
    const auto use = capi::enter(one.tables(), capi::Access::kShared);
    EXPECT_EQ(use->collection().threads().count(), core::default_thread_count(2));
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

TEST(Mesh, SizesAndPlacementsThatDifferAreADisagreementOnAllRanks) {
  run_ranks(4, 2, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
    const MeshRank other_size(comm, {.group = rank == 2 ? 4 : 2});
    EXPECT_EQ(other_size.status(), SHARDREC_DISAGREEMENT);
    EXPECT_NE(std::string(shardrec_last_error())
                  .find("rank 2 gave mesh_create another "
                        "sharding_group_size than rank 0"),
              std::string::npos)
        << shardrec_last_error();
    const MeshRank other_placement(comm,
                                   {.placement = rank == 1 ? SHARDREC_PLACEMENT_INTRA_NODE_SHARD
                                                           : SHARDREC_PLACEMENT_INTRA_NODE_SYNC});
    EXPECT_EQ(other_placement.status(), SHARDREC_DISAGREEMENT);
    const MeshRank again(comm, {});
    SR_EXPECT_OK(again.status());
  });
}

TEST(Mesh, ACollectionWithAMeshOnSomeRanksOnlyIsADisagreementOnAll) {
  run_ranks(4, 2, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
    MeshRank one(comm, {});
    SR_OK(one.status());
    for (const int without : {0, 2}) {
      EXPECT_EQ(one.create_collection(rank == without ? nullptr : one.mesh()),
                SHARDREC_DISAGREEMENT);
      const std::string sentence = shardrec_last_error();
      EXPECT_NE(sentence.find("another mesh (NULL or given) than rank 0"), std::string::npos)
          << sentence;
      int64_t failed_rank = -1;
      shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank);
      EXPECT_EQ(failed_rank, without == 0 ? 1 : without);
      EXPECT_EQ(one.tables(), nullptr);
    }
    one.create();
    SR_OK(one.status());
    one.step(rank, 1);
    SR_EXPECT_OK(shardrec_collection_sync_replicas(one.tables()));
  });
}

TEST(Mesh, APlanForOtherTablesThanTheModelsIsRefusedOnAllRanks) {
  run_ranks(4, 2, [&](int, shardrec_comm* comm) {
    MeshRank one(comm, {});
    SR_OK(one.status());
    shardrec_model* empty = nullptr;
    SR_OK(shardrec_model_create(nullptr, &empty));
    shardrec_collection* tables = nullptr;
    EXPECT_EQ(shardrec_collection_create(comm, one.mesh(), empty, one.plan(), nullptr, &tables),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_NE(std::string(shardrec_last_error()).find("the plan is for 1 tables"),
              std::string::npos)
        << shardrec_last_error();
    shardrec_model_destroy(&empty);
    one.create();
    SR_EXPECT_OK(one.status());
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
    EXPECT_EQ(shardrec_collection_sync_replicas(one.tables()), SHARDREC_ABORTED)
        << shardrec_last_error();
    together.arrive_and_wait();
  });
}

// A list concerns the own replica, and ranks of the own sharding group are the ones that answer.
TEST(Mesh, RowsByIdsAreThoseOfTheOwnReplica) {
  run_ranks(4, 2, [](int, shardrec_comm* comm) {
    MeshRank rank(comm, {});
    rank.create();
    std::vector<float> before = rank.read(SHARDREC_TABLE_WEIGHTS);
    std::vector<int64_t> ids = {12, 0, 12};
    std::vector<float> rows(3 * MeshRank::kDim, static_cast<float>(rank.replica() + 1));
    const shardrec_tensor list = vector_of(ids);
    const shardrec_tensor values = matrix(rows.data(), 3, MeshRank::kDim);
    SR_EXPECT_OK(
        shardrec_collection_write_rows(rank.tables(), 0, SHARDREC_TABLE_WEIGHTS, &list, &values));
    for (const int64_t row : {int64_t{0}, int64_t{12}}) {
      std::fill_n(before.begin() + row * MeshRank::kDim, MeshRank::kDim,
                  static_cast<float>(rank.replica() + 1));
    }
    EXPECT_EQ(rank.read(SHARDREC_TABLE_WEIGHTS), before);
    ids = {5, 12, 5};
    SR_EXPECT_OK(
        shardrec_collection_read_rows(rank.tables(), 0, SHARDREC_TABLE_WEIGHTS, &list, &values));
    for (size_t i = 0; i < ids.size(); ++i) {
      for (int64_t c = 0; c < MeshRank::kDim; ++c) {
        EXPECT_EQ(rows[i * MeshRank::kDim + static_cast<size_t>(c)],
                  before[static_cast<size_t>(ids[i] * MeshRank::kDim + c)]);
      }
    }
  });
}

TEST(Mesh, ACollectionWithoutAMeshOrOfOneReplicaHasNothingToSync) {
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    for (const bool on_mesh : {true, false}) {
      MeshRank one(comm, {});
      SR_OK(one.create_collection(on_mesh ? one.mesh() : nullptr));
      one.create_lookup();
      one.step(rank, 1);
      const std::vector<float> before = one.read(SHARDREC_TABLE_WEIGHTS);
      SR_EXPECT_OK(shardrec_collection_sync_replicas(one.tables()));
      EXPECT_EQ(one.read(SHARDREC_TABLE_WEIGHTS), before);
    }
  });
}

TEST(ReplicaSync, AveragesBothStatesOfAdam) {
  std::mutex mutex;
  std::array<std::array<std::vector<float>, 2>, 2> before;  // by replica and state
  std::array<std::array<std::vector<float>, 2>, 2> after;
  run_ranks(4, 2, [&](int rank, shardrec_comm* comm) {
    Rank one(comm, {.optimizer = SHARDREC_OPTIMIZER_ADAM});
    SR_OK(one.status());
    one.step(rank, 0.5F + static_cast<float>(rank));
    const std::array drifted = {one.read(SHARDREC_TABLE_STATE), one.read(SHARDREC_TABLE_STATE_2)};
    SR_OK(shardrec_collection_sync_replicas(one.tables()));
    const std::array synced = {one.read(SHARDREC_TABLE_STATE), one.read(SHARDREC_TABLE_STATE_2)};
    const std::lock_guard lock(mutex);
    before[static_cast<size_t>(one.replica())] = drifted;
    after[static_cast<size_t>(one.replica())] = synced;
  });
  for (size_t state = 0; state < 2; ++state) {
    EXPECT_NE(before[0][state], before[1][state]);
    EXPECT_EQ(after[0][state], after[1][state]);
    for (size_t i = 0; i < after[0][state].size(); ++i) {
      EXPECT_EQ(after[0][state][i], (before[0][state][i] + before[1][state][i]) / 2) << i;
    }
  }
}

}  // namespace
}  // namespace shardrec::test
