// Memory runs out at the k-th allocation of one rank of a mesh, for every k: in the creation of a
// collection and in a sync. Nobody hangs, and nobody goes on as if nothing had happened.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <string>

#include "faults/failing_allocator.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int kMeshRanks = 4;

// By rank.
using Statuses = std::array<shardrec_status, kMeshRanks>;

std::string text(const Statuses& statuses) {
  std::string out;
  for (const shardrec_status status : statuses) {
    out += std::string(" ") + shardrec_status_name(status);
  }
  return out;
}

// Calls run(rank, comm, k) on the ranks of two replicas for every k of the stride, until nothing
// fails. Returns the last k.
template <class Run>
int64_t for_each_allocation(Run run) {
  int64_t k = 1 - allocation_stride();
  for (bool fired = true; fired && !::testing::Test::HasFailure();) {
    k += allocation_stride();
    fired = false;
    run_ranks(kMeshRanks, 2, [&](int rank, shardrec_comm* comm) {
      SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
      SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
      run(rank, comm, k, fired);
    });
  }
  return k;
}

// With what options: on a mesh the sharding groups have more to make for NON_FINITE SKIP.
class MeshShortage : public ::testing::TestWithParam<const char*> {
 protected:
  static Arrangement arrangement() {
    Arrangement setup;
    setup.options = [non_finite = GetParam()](shardrec_options* options) {
      SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_NON_FINITE, non_finite));
    };
    return setup;
  }
};

INSTANTIATE_TEST_SUITE_P(NonFinite, MeshShortage, ::testing::Values("allow", "skip"),
                         [](const auto& test) { return std::string(test.param); });

void expect_creation_ends_alike_on_all_ranks(const Arrangement& arrangement) {
  std::barrier together(kMeshRanks);
  Statuses created{};
  Statuses alive{};
  int64_t usable = 0;
  int64_t dead = 0;
  int64_t spared = 0;  // allocations that could be done without: the task scheduler asks for some
  for_each_allocation([&](int rank, shardrec_comm* comm, int64_t k, bool& fired) {
    MeshRank one(comm, arrangement);
    SR_EXPECT_OK(one.status());
    together.arrive_and_wait();
    if (rank == 0) fail_allocation(k, Shortage::kOnce);
    created[static_cast<size_t>(rank)] = one.create_collection();
    if (rank == 0) fired = end_shortage();
    together.arrive_and_wait();
    alive[static_cast<size_t>(rank)] = shardrec_comm_status(comm);
    together.arrive_and_wait();
    if (rank == 0) {
      const std::string what = "allocation " + std::to_string(k) + text(created) + text(alive);
      if (fired && created[0] == SHARDREC_OK) {
        ++spared;
      } else {
        EXPECT_EQ(created[0], fired ? SHARDREC_OUT_OF_MEMORY : SHARDREC_OK) << what;
      }
      const bool lives = alive[0] == SHARDREC_OK;
      if (fired) ++(lives ? usable : dead);
      for (size_t r = 1; r < kMeshRanks; ++r) {
        EXPECT_EQ(created[r], lives ? created[0] : SHARDREC_PEER_FAILED) << what;
        EXPECT_EQ(alive[r], alive[0]) << what;
      }
    }
    together.arrive_and_wait();
    if (alive[0] != SHARDREC_OK || created[0] == SHARDREC_OK) return;
    SR_EXPECT_OK(one.create_collection());
    together.arrive_and_wait();
  });
  EXPECT_GT(usable, 10 / allocation_stride());
  EXPECT_GT(dead, 10 / allocation_stride());
  EXPECT_LE(spared, 2);
}

TEST_P(MeshShortage, CreationIsOutOfMemoryAndEndsAlikeOnAllRanks) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  expect_creation_ends_alike_on_all_ranks(arrangement());
}

// The ranks of all sharding groups make it together.
TEST(MeshShortageOfReplicatedTables, CreationIsOutOfMemoryAndEndsAlikeOnAllRanks) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  expect_creation_ends_alike_on_all_ranks({.sharding = SHARDREC_SHARDING_DATA_PARALLEL});
}

TEST_P(MeshShortage, SyncEndsTheGroupsOfTheRankThatStopped) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  std::barrier together(kMeshRanks);
  Statuses synced{};
  Statuses later{};
  const int64_t last =
      for_each_allocation([&](int rank, shardrec_comm* comm, int64_t k, bool& fired) {
        MeshRank one(comm, arrangement());
        one.create();
        SR_EXPECT_OK(one.status());
        one.step(rank, 1);
        together.arrive_and_wait();
        if (rank == 0) fail_allocation(k, Shortage::kOnce);
        synced[static_cast<size_t>(rank)] = shardrec_collection_sync_replicas(one.tables());
        if (rank == 0) fired = end_shortage();
        // The other ranks' groups end with the first call that needs a rank which has stopped.
        shardrec_status status = one.try_step(rank, 1);
        if (status == SHARDREC_OK) status = shardrec_collection_sync_replicas(one.tables());
        later[static_cast<size_t>(rank)] = status;
        together.arrive_and_wait();
        if (rank == 0) {
          const std::string what = "allocation " + std::to_string(k) + text(synced) + text(later);
          EXPECT_EQ(synced[0], fired ? SHARDREC_OUT_OF_MEMORY : SHARDREC_OK) << what;
          for (size_t r = 0; r < kMeshRanks; ++r) {
            EXPECT_EQ(later[r], fired ? SHARDREC_PEER_FAILED : SHARDREC_OK) << what;
            if (r == 0 || synced[r] == SHARDREC_PEER_FAILED) continue;
            EXPECT_EQ(synced[r], SHARDREC_OK) << what;
          }
        }
        together.arrive_and_wait();
      });
  EXPECT_GT(last, 4);
}

double buffers_of(MeshRank& one) {
  double bytes = -1;
  SR_EXPECT_OK(shardrec_collection_stat(one.tables(), SHARDREC_STAT_BYTES_BUFFERS,
                                        SHARDREC_ALL_TABLES, &bytes));
  return bytes;
}

// sync(one): a call on the replicas, or two, that all ranks make. Where all refuse it alike, all is as before.
template <class Sync>
void expect_refused_by_all_or_the_end_of_the_mesh(Sync sync, int64_t least_allocations) {
  std::barrier together(kMeshRanks);
  Statuses synced{};
  Statuses later{};
  const int64_t last =
      for_each_allocation([&](int rank, shardrec_comm* comm, int64_t k, bool& fired) {
        MeshRank one(comm, {});
        one.create();
        SR_EXPECT_OK(one.status());
        one.step(rank, 1);
        const auto r = static_cast<size_t>(rank);
        const double buffers_before = buffers_of(one);
        together.arrive_and_wait();
        if (rank == 0) fail_allocation(k, Shortage::kOnce);
        synced[r] = sync(one);
        if (rank == 0) fired = end_shortage();
        const double buffers = buffers_of(one);
        later[r] = one.try_step(rank, 1);
        if (synced[r] != SHARDREC_OK && later[r] == SHARDREC_OK) {
          EXPECT_EQ(buffers, buffers_before) << "rank " << rank << ", allocation " << k;
        }
        if (later[r] == SHARDREC_OK) later[r] = sync(one);
        together.arrive_and_wait();
        if (rank == 0) {
          const std::string what = "allocation " + std::to_string(k) + text(synced) + text(later);
          EXPECT_EQ(synced[0], fired ? SHARDREC_OUT_OF_MEMORY : SHARDREC_OK) << what;
          const bool lives = later[0] == SHARDREC_OK;
          for (size_t each = 0; each < kMeshRanks; ++each) {
            EXPECT_EQ(later[each], lives ? SHARDREC_OK : SHARDREC_PEER_FAILED) << what;
            if (lives) {
              EXPECT_EQ(synced[each], synced[0]) << what;
            }
          }
        }
        together.arrive_and_wait();
      });
  EXPECT_GT(last, least_allocations);
}

TEST(MeshShortageOfReplicas, ASyncInTwoHalvesIsRefusedByAllRanksOrEndsTheMesh) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  expect_refused_by_all_or_the_end_of_the_mesh(
      [](MeshRank& one) {
        const shardrec_status begun = shardrec_collection_sync_begin(one.tables());
        return begun == SHARDREC_OK ? shardrec_collection_sync_wait(one.tables()) : begun;
      },
      20);
}

// Ranks of the other replica group hear of it, too.
TEST(MeshShortageOfReplicas, AFillThatOneRankEndsIsDoneOnNone) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  std::barrier together(kMeshRanks);
  Statuses filled{};
  for_each_allocation([&](int rank, shardrec_comm* comm, int64_t k, bool& fired) {
    MeshRank one(comm, {});
    one.create();
    SR_EXPECT_OK(one.status());
    together.arrive_and_wait();
    if (rank == 0) fail_allocation(k, Shortage::kOnce);
    filled[static_cast<size_t>(rank)] = shardrec_collection_replica_fill(one.tables(), 1);
    if (rank == 0) fired = end_shortage();
    together.arrive_and_wait();
    for (const shardrec_status status : filled) {
      EXPECT_EQ(status == SHARDREC_OK, !fired) << "allocation " << k << text(filled);
    }
    together.arrive_and_wait();
  });
}

TEST(MeshShortageOfReplicas, ChecksAndFillsAreRefusedByAllRanksOrEndTheMesh) {
#ifdef SHARDREC_THREAD_SANITIZER
  GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
  expect_refused_by_all_or_the_end_of_the_mesh(
      [](MeshRank& one) {
        const shardrec_status filled = shardrec_collection_replica_fill(one.tables(), 1);
        return filled == SHARDREC_OK ? shardrec_collection_check_replicas(one.tables()) : filled;
      },
      10);
}

}  // namespace
}  // namespace shardrec::test
