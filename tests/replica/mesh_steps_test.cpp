// Steps on a mesh with replicated tables are of all its ranks: what one rank does not take, none takes, and who waits is
// told of a rank that is gone or late in another sharding group.
#include <gtest/gtest.h>

#include <cmath>
#include <latch>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "objects/collection_object.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

constexpr int kWorld = 4;  // sharding groups are of the ranks 0 and 2, and 1 and 3

Arrangement replicated(const char* non_finite = "allow") {
  Arrangement setup{.sharding = SHARDREC_SHARDING_DATA_PARALLEL, .group = 2};
  setup.options = [non_finite](shardrec_options* options) {
    SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_NON_FINITE, non_finite));
  };
  return setup;
}

int64_t step_of(shardrec_collection* tables) {
  int64_t step = -1;
  SR_EXPECT_OK(shardrec_collection_step(tables, &step));
  return step;
}

std::vector<float> weights_of(MeshRank& one) { return one.read(SHARDREC_TABLE_WEIGHTS); }

// The rank of the mesh that the last error names.
int64_t named_rank() {
  int64_t rank = -1;
  shardrec_last_error_i64(SHARDREC_ERROR_RANK, &rank);
  return rank;
}

// Runs body on every rank, with a replicated table that was trained for one step. Then all copies are the same.
template <class Body>
void run_trained(const Arrangement& setup, const Body& body) {
  std::mutex mutex;
  std::vector<std::vector<float>> copies;
  run_ranks(kWorld, 2, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    MeshRank one(comm, setup);
    one.create();
    SR_OK(one.status());
    one.step(rank, 1);
    body(rank, one);
    auto copy = weights_of(one);
    const std::lock_guard lock(mutex);
    copies.push_back(std::move(copy));
  });
  for (const auto& copy : copies) EXPECT_EQ(copy, copies.front());
}

TEST(MeshSteps, ThatOneRankSkipsAreTakenByNone) {
  run_trained(replicated(), [](int rank, MeshRank& one) {
    const auto before = weights_of(one);
    SR_OK(one.prepare_step(rank, 1));
    SR_OK(shardrec_lookup_backward(one.lookup(),
                                   rank == 1 ? SHARDREC_UPDATE_SKIP : SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(step_of(one.tables()), 1);
    EXPECT_EQ(weights_of(one), before);
    one.step(rank, 1);
    EXPECT_EQ(step_of(one.tables()), 2);
    EXPECT_NE(weights_of(one), before);
  });
}

TEST(MeshSteps, WithAnInfinityAreSkippedOrRefusedByAll) {
  for (const bool skips : {true, false}) {
    run_trained(replicated(skips ? "skip" : "error"), [&](int rank, MeshRank& one) {
      const auto before = weights_of(one);
      const shardrec_status status = one.try_step(rank, rank == 3 ? INFINITY : 1);
      EXPECT_EQ(status, skips ? SHARDREC_OK : SHARDREC_INVALID_BATCH);
      if (!skips) {
        EXPECT_EQ(named_rank(), 3);
      }
      EXPECT_EQ(step_of(one.tables()), 1);
      EXPECT_EQ(weights_of(one), before);
      one.step(rank, 1);
      EXPECT_EQ(step_of(one.tables()), 2);
    });
  }
}

TEST(MeshSteps, OfDifferentKindsAreRefusedByAll) {
  run_trained(replicated(), [](int rank, MeshRank& one) {
    const auto before = weights_of(one);
    SR_OK(one.prepare_step(rank, 1));
    EXPECT_EQ(shardrec_lookup_backward(
                  one.lookup(), rank == 1 ? SHARDREC_UPDATE_ACCUMULATE : SHARDREC_UPDATE_APPLY),
              SHARDREC_INVALID_BATCH);
    EXPECT_EQ(weights_of(one), before);
  });
}

TEST(MeshSteps, WithASettingOfOneShardingGroupAloneAreRefusedByAll) {
  run_trained(replicated(), [](int rank, MeshRank& one) {
    const auto before = weights_of(one);
    const auto set_rate = [&](double rate) {
      SR_EXPECT_OK(shardrec_collection_set_learning_rate(one.tables(), SHARDREC_ALL_TABLES, rate));
    };
    set_rate(rank % 2 == 0 ? 0.1 : 0.2);
    EXPECT_EQ(one.try_step(rank, 1), SHARDREC_INVALID_BATCH) << shardrec_last_error();
    EXPECT_EQ(weights_of(one), before);
    set_rate(0.1);
    one.step(rank, 1);
  });
}

TEST(MeshSteps, ABatchThatIsRefusedIsEveryRanksErrorAndNamesTheRankOfTheMesh) {
  run_trained(replicated(), [](int rank, MeshRank& one) {
    EXPECT_EQ(one.prepare_step(rank == 3 ? MeshRank::kRows : rank, 1), SHARDREC_INVALID_BATCH);
    EXPECT_EQ(named_rank(), 3);
    one.step(rank, 1);
    EXPECT_EQ(step_of(one.tables()), 2);
  });
}

// Ranks have 1, 2, 3 and 4 batches: those without one take part until nobody has any.
TEST(MeshSteps, GoOnUntilNoRankOfAnyShardingGroupHasData) {
  run_trained(replicated(), [](int rank, MeshRank& one) {
    for (int batch = 0; batch <= kWorld; ++batch) {
      std::vector<float> output(MeshRank::kDim);
      if (batch <= rank) {
        SR_OK(one.prepare_step(rank, 1));
      } else {
        const shardrec_tensor nothing = matrix(output.data(), 0, MeshRank::kDim);
        SR_OK(begin_batch(one.lookup(), {}));
        SR_OK(shardrec_lookup_forward(one.lookup(), 0, &nothing));
      }
      int32_t all_done = -1;
      SR_OK(shardrec_lookup_all_done(one.lookup(), &all_done));
      EXPECT_EQ(all_done, batch == kWorld ? 1 : 0);
      SR_OK(shardrec_lookup_backward(one.lookup(),
                                     all_done == 1 ? SHARDREC_UPDATE_SKIP : SHARDREC_UPDATE_APPLY));
    }
    EXPECT_EQ(step_of(one.tables()), 1 + kWorld);
  });
}

// Nothing differs between replicas that have nothing but replicated tables: they may be saved without a sync.
TEST(MeshSteps, LeaveReplicasOfReplicatedTablesInStep) {
  run_trained(replicated(), [](int, MeshRank& one) {
    const auto use = capi::enter(one.tables(), capi::Access::kShared);
    EXPECT_EQ(use->tables->writes_rows(), one.replica() == 0);
  });
}

TEST(MeshSteps, RowsThatOneRankWritesAreThoseOfAllCopies) {
  run_trained(replicated(), [](int rank, MeshRank& one) {
    auto expected = weights_of(one);
    std::vector<int64_t> ids = {12, 0};
    std::vector<float> rows(2 * MeshRank::kDim, 3);
    const shardrec_tensor list = vector_of(ids);
    const shardrec_tensor values = matrix(rows.data(), 2, MeshRank::kDim);
    const bool writes = rank == 1;
    SR_OK(shardrec_collection_write_rows(one.tables(), 0, SHARDREC_TABLE_WEIGHTS,
                                         writes ? &list : nullptr, writes ? &values : nullptr));
    for (const int64_t row : ids) {
      std::fill_n(expected.begin() + row * MeshRank::kDim, MeshRank::kDim, 3.0F);
    }
    EXPECT_EQ(weights_of(one), expected);
    rows.assign(rows.size(), 4);
    SR_OK(shardrec_collection_write_range(one.tables(), 0, SHARDREC_TABLE_WEIGHTS, 5,
                                          writes ? 2 : 0, writes ? &values : nullptr));
    std::fill_n(expected.begin() + 5 * MeshRank::kDim, 2 * MeshRank::kDim, 4.0F);
    EXPECT_EQ(weights_of(one), expected);
  });
}

TEST(MeshSteps, CannotSumOnNodesWhatGoesOverAllShardingGroups) {
  Arrangement setup = replicated();
  setup.options = [](shardrec_options* options) {
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_HIERARCHICAL, 1));
  };
  run_ranks(kWorld, 2, [&](int, shardrec_comm* comm) {
    MeshRank one(comm, setup);
    EXPECT_EQ(one.create_collection(), SHARDREC_UNSUPPORTED);
    EXPECT_NE(std::string(shardrec_last_error()).find("HIERARCHICAL"), std::string::npos)
        << shardrec_last_error();
  });
}

// Rank 0 is gone in the middle of a step: both sharding groups are told in their next call.
TEST(MeshSteps, ARankThatIsGoneEndsThoseOfAllShardingGroups) {
  std::latch begun(kWorld);
  std::latch over(kWorld);
  run_ranks(kWorld, 2, [&](int rank, shardrec_comm* comm) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    MeshRank one(comm, replicated());
    one.create();
    SR_EXPECT_OK(one.status());
    SR_EXPECT_OK(one.prepare_step(rank, 1));
    begun.arrive_and_wait();
    if (rank == 0) {
      shardrec_comm_abort(comm, "gone");
    } else {
      EXPECT_NE(shardrec_lookup_backward(one.lookup(), SHARDREC_UPDATE_APPLY), SHARDREC_OK);
      EXPECT_NE(one.try_step(rank, 1), SHARDREC_OK);
    }
    over.arrive_and_wait();
  });
}

// A sharding group that steps alone waits for the others, and is told for whom and in what: rank 0 by its own deadline,
// which passes before that of rank 2, and rank 2 because rank 0 has given up.
TEST(MeshSteps, ThatOneShardingGroupDoesNotTakeEndByTheDeadline) {
  std::latch late(2);
  std::latch over(kWorld);
  run_ranks(kWorld, 2, [&](int rank, shardrec_comm* comm) {
    const bool waits = rank % 2 == 0;
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, rank == 0 ? 0.05 : 20));
    MeshRank one(comm, replicated());
    one.create();
    SR_EXPECT_OK(one.status());
    if (waits) {
      const shardrec_status status = one.try_step(rank, 1);
      EXPECT_TRUE(status == SHARDREC_TIMEOUT || status == SHARDREC_PEER_FAILED)
          << shardrec_last_error();
      if (status == SHARDREC_TIMEOUT) {
        EXPECT_EQ(named_rank() % 2, 1) << shardrec_last_error();
        EXPECT_NE(std::string(shardrec_last_error()).find("begin"), std::string::npos)
            << shardrec_last_error();
      }
      late.count_down();
    } else {
      late.wait();
      EXPECT_NE(one.try_step(rank, 1), SHARDREC_OK);
    }
    over.arrive_and_wait();
  });
}

}  // namespace
}  // namespace shardrec::test
