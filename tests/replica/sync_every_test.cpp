// Option SYNC_EVERY: every n-th update ends with the sync that could have been asked for behind it.
#include <gtest/gtest.h>

#include <barrier>
#include <random>
#include <string>
#include <vector>

#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int kEveryWorld = 4;

Arrangement synced_every(int64_t updates, Arrangement others = {}) {
  others.options = [updates](shardrec_options* options) {
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SYNC_EVERY, updates));
  };
  return others;
}

// Are the replicas equal? Collective.
bool are_equal(MeshRank& rank) {
  const shardrec_status status = shardrec_collection_check_replicas(rank.tables());
  EXPECT_TRUE(status == SHARDREC_OK || status == SHARDREC_DISAGREEMENT) << shardrec_last_error();
  return status == SHARDREC_OK;
}

double bytes_synced(MeshRank& rank) {
  double value = -1;
  SR_EXPECT_OK(shardrec_collection_stat(rank.tables(), SHARDREC_STAT_BYTES_SYNC,
                                        SHARDREC_ALL_TABLES, &value));
  return value;
}

shardrec_status finish(MeshRank& rank, shardrec_update update, bool in_background) {
  if (!in_background) return shardrec_lookup_backward(rank.lookup(), update);
  const shardrec_status status = shardrec_lookup_backward_begin(rank.lookup(), update);
  return status == SHARDREC_OK ? shardrec_lookup_backward_wait(rank.lookup()) : status;
}

struct EveryRun {
  const char* name;
  int world = kEveryWorld;
  shardrec_replica_sync sync = SHARDREC_REPLICA_SYNC_TOUCHED;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
  bool replicated_too = false;
};

class SyncEvery : public ::testing::TestWithParam<EveryRun> {};

// Updates alone count: some batches are accumulated, and each replica looks up another number of batches in between.
TEST_P(SyncEvery, EndsTheNthUpdateWithTheSyncThatIsAskedForElsewhere) {
  constexpr int64_t kUpdates = 3;
  const EveryRun run = GetParam();
  const Arrangement setup{
      .optimizer = run.optimizer, .sync = run.sync, .replicated_too = run.replicated_too};
  run_ranks(run.world, run.world, [&](int number, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 60));
    MeshRank own(comm, synced_every(kUpdates, setup));
    MeshRank asked(comm, setup);
    for (MeshRank* each : {&own, &asked}) {
      each->create();
      SR_OK(each->status());
    }
    std::mt19937_64 of_all(71);
    std::mt19937_64 of_rank(100 + static_cast<uint64_t>(number));
    int64_t updates = 0;  // behind the last sync
    for (int step = 0; step < 24; ++step) {
      // All sharding groups look up together where one collection is of all of them.
      const int looked_up = run.replicated_too ? 0 : own.replica() * (step % 2);
      for (int more = 0; more < looked_up; ++more) {
        SR_OK(own.prepare_step(more, 1));
        SR_OK(finish(own, SHARDREC_UPDATE_SKIP, more % 2 == 0));
      }
      const shardrec_update update =
          of_all() % 4 == 0 ? SHARDREC_UPDATE_ACCUMULATE : SHARDREC_UPDATE_APPLY;
      const auto id = static_cast<int64_t>(of_rank() % MeshRank::kRows);
      const float slope = 0.5F + static_cast<float>(of_rank() % 8);
      for (MeshRank* each : {&own, &asked}) {
        SR_OK(each->prepare_step(id, slope));
        SR_OK(finish(*each, update, (step + number) % 3 == 0));
      }
      updates += update == SHARDREC_UPDATE_APPLY ? 1 : 0;
      const bool asks = of_all() % 7 == 0 && updates < kUpdates;  // of both
      if (asks) {
        SR_OK(shardrec_collection_sync_replicas(own.tables()));
      }
      if (asks || updates == kUpdates) {
        SR_OK(shardrec_collection_sync_replicas(asked.tables()));
        updates = 0;
      }
      EXPECT_EQ(own.read(SHARDREC_TABLE_WEIGHTS), asked.read(SHARDREC_TABLE_WEIGHTS)) << step;
      EXPECT_EQ(own.read(SHARDREC_TABLE_STATE), asked.read(SHARDREC_TABLE_STATE)) << step;
      if (updates == 0) {
        EXPECT_TRUE(are_equal(own)) << step;
      }
      if (updates == 1) {
        EXPECT_FALSE(are_equal(own)) << step;
      }
    }
    EXPECT_EQ(bytes_synced(own), bytes_synced(asked));
  });
}

INSTANTIATE_TEST_SUITE_P(
    Runs, SyncEvery,
    ::testing::Values(EveryRun{"Touched"}, EveryRun{"Full", 4, SHARDREC_REPLICA_SYNC_FULL},
                      EveryRun{"ThreeReplicasOfAdam", 6, SHARDREC_REPLICA_SYNC_TOUCHED,
                               SHARDREC_OPTIMIZER_ADAM},
                      EveryRun{"WithAReplicatedTable", 4, SHARDREC_REPLICA_SYNC_TOUCHED,
                               SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, true}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(SyncEveryCount, BeginsAnewAtAFill) {
  run_ranks(kEveryWorld, kEveryWorld, [&](int number, shardrec_comm* comm) {
    MeshRank own(comm, synced_every(2));
    own.create();
    SR_OK(own.status());
    const auto step = [&](int64_t id) { own.step((id + number) % MeshRank::kRows, 1); };
    step(0);
    SR_OK(shardrec_collection_replica_fill(own.tables(), 1));
    step(1);
    EXPECT_FALSE(are_equal(own)) << "the fill began the count anew";
    step(2);
    EXPECT_TRUE(are_equal(own));
  });
}

TEST(OverlappedSyncCalls, HaveNoSyncOfAStepBetweenThemWhichAreCountedFromTheWaitOn) {
  run_ranks(kEveryWorld, kEveryWorld, [&](int number, shardrec_comm* comm) {
    MeshRank own(comm, synced_every(2));
    own.create();
    SR_OK(own.status());
    const auto step = [&](int64_t id) { own.step((id + number) % MeshRank::kRows, 1); };
    step(0);
    step(1);
    EXPECT_TRUE(are_equal(own));
    SR_OK(shardrec_collection_sync_begin(own.tables()));
    const double bytes = bytes_synced(own);
    for (int64_t id = 3; id < 6; ++id) step(id);
    SR_OK(shardrec_collection_sync_wait(own.tables()));
    EXPECT_EQ(bytes_synced(own), bytes) << "no row had changed before begin";
    step(6);
    EXPECT_FALSE(are_equal(own)) << "the wait began the count anew";
    step(7);
    EXPECT_TRUE(are_equal(own));
  });
}

TEST(SyncEveryFails, WithTheStepWhereSettingsDifferAndTheNextUpdateSyncs) {
  for (const bool in_background : {false, true}) {
    run_ranks(kEveryWorld, kEveryWorld, [&](int number, shardrec_comm* comm) {
      MeshRank own(comm, synced_every(1));
      MeshRank alone(comm, {});  // what becomes of the rows without a sync
      for (MeshRank* each : {&own, &alone}) {
        each->create();
        SR_OK(each->status());
        const double rate = each->replica() == 1 ? 0.5 : 0.25;
        SR_OK(shardrec_collection_set_learning_rate(each->tables(), 0, rate));
        SR_OK(each->prepare_step(number, 2));
      }
      EXPECT_EQ(finish(own, SHARDREC_UPDATE_APPLY, in_background), SHARDREC_DISAGREEMENT);
      EXPECT_NE(std::string(shardrec_last_error()).find("learning rate"), std::string::npos)
          << shardrec_last_error();
      SR_OK(finish(alone, SHARDREC_UPDATE_APPLY, in_background));
      int64_t steps = 0;
      SR_OK(shardrec_collection_step(own.tables(), &steps));
      EXPECT_EQ(steps, 1) << "the update has been made";
      EXPECT_EQ(own.read(SHARDREC_TABLE_WEIGHTS), alone.read(SHARDREC_TABLE_WEIGHTS));
      SR_OK(shardrec_collection_set_learning_rate(own.tables(), 0, 0.25));
      SR_OK(own.prepare_step(number, 2));
      SR_OK(finish(own, SHARDREC_UPDATE_APPLY, in_background));
      EXPECT_TRUE(are_equal(own));
    });
  }
}

TEST(SyncEveryFails, WithTheStepWhereAReplicaIsGoneAndTheMeshIsDead) {
  for (const bool in_background : {false, true}) {
    std::barrier<> prepared(kEveryWorld);
    run_ranks(kEveryWorld, kEveryWorld, [&](int number, shardrec_comm* comm) {
      MeshRank own(comm, synced_every(2));
      own.create();
      SR_OK(own.status());
      own.step(number, 1);
      SR_OK(own.prepare_step(number, 2));
      prepared.arrive_and_wait();
      if (own.replica() == 1) {
        SR_OK(shardrec_comm_abort(comm, "gone"));
        return;
      }
      const shardrec_status status = finish(own, SHARDREC_UPDATE_APPLY, in_background);
      EXPECT_TRUE(status == SHARDREC_ABORTED || status == SHARDREC_PEER_FAILED)
          << shardrec_last_error();
      EXPECT_NE(shardrec_comm_status(comm), SHARDREC_OK);
      EXPECT_NE(own.try_step(number, 1), SHARDREC_OK);
    });
  }
}

// Outputs tell whether rows are those of the other replica too.
TEST(SyncEveryLookups, SyncAlsoWhereTheHandleOfTheCollectionIsGone) {
  std::vector<std::vector<float>> outputs(kEveryWorld);
  std::vector<std::vector<float>> of_one_step(kEveryWorld);
  run_ranks(kEveryWorld, kEveryWorld, [&](int number, shardrec_comm* comm) {
    MeshRank own(comm, synced_every(2));
    own.create();
    SR_OK(own.status());
    shardrec_collection* tables = own.tables();
    shardrec_collection_destroy(&tables);
    own.step(own.replica() == 0 ? 3 : 6, 1);
    own.step(3, 1);
    of_one_step[static_cast<size_t>(number)] = own.output();
    SR_OK(own.prepare_step(3, 1));
    SR_OK(shardrec_lookup_backward(own.lookup(), SHARDREC_UPDATE_SKIP));
    outputs[static_cast<size_t>(number)] = own.output();
  });
  for (size_t rank = 1; rank < outputs.size(); ++rank) EXPECT_EQ(outputs[rank], outputs[0]);
  EXPECT_NE(outputs[0], of_one_step[0]);
  EXPECT_NE(of_one_step[3], of_one_step[0]) << "one update syncs nothing";
}

TEST(SyncEveryOption, IsOfNoUseWithExactReplicasAndDoesNothingWithoutOthers) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    for (const auto sync : {SHARDREC_REPLICA_SYNC_EXACT, SHARDREC_REPLICA_SYNC_SHARDED}) {
      MeshRank exact(comm, synced_every(4, {.group = 1, .sync = sync}));
      EXPECT_EQ(exact.create_collection(), SHARDREC_INVALID_ARGUMENT);
      EXPECT_NE(std::string(shardrec_last_error()).find("SYNC_EVERY"), std::string::npos)
          << shardrec_last_error();
    }
    MeshRank one(comm, synced_every(1));
    one.create();
    SR_OK(one.status());
    one.step(number, 1);
    MeshRank without(comm, synced_every(1));
    without.create_collection(nullptr);
    SR_OK(without.status());
    without.create_lookup();
    without.step(number, 1);
    EXPECT_EQ(without.read(SHARDREC_TABLE_WEIGHTS), one.read(SHARDREC_TABLE_WEIGHTS));
    EXPECT_EQ(bytes_synced(one), 0);
  });
}

}  // namespace
}  // namespace shardrec::test
