// Collections that go on with the tables of an earlier group (shardrec_collection_continue_from), of which ranks are
// gone.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "objects/collection_object.h"
#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

// What a rank holds, as all of its sharding group see it.
struct HeldRows {
  std::vector<float> weights, state, replicated;
  int64_t step = 0;
  double rate = 0;

  bool operator==(const HeldRows&) const = default;
};

HeldRows held_by(MeshRank& rank, bool replicated_too = false) {
  HeldRows held{.weights = rank.read(SHARDREC_TABLE_WEIGHTS),
                .state = rank.read(SHARDREC_TABLE_STATE)};
  if (replicated_too) held.replicated = rank.read(SHARDREC_TABLE_WEIGHTS, MeshRank::kDim, 1);
  SR_EXPECT_OK(shardrec_collection_step(rank.tables(), &held.step));
  SR_EXPECT_OK(shardrec_collection_learning_rate(rank.tables(), 0, &held.rate));
  return held;
}

int64_t rank_of_error() {
  int64_t rank = -1;
  SR_EXPECT_OK(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &rank));
  return rank;
}

// A mesh whose last rank ends, and the mesh of those that go on. Ranks are interleaved: of 6 in groups of 2 replica 0
// has ranks 0 and 3, replica 1 ranks 1 and 4, replica 2 ranks 2 and 5.
class TwoGroups {
 public:
  // later: the number of each rank in the second group; -1: it is not in it.
  TwoGroups(std::vector<int> later, Arrangement before, Arrangement after)
      : later_(std::move(later)), before_(std::move(before)), after_(std::move(after)) {}
  TwoGroups(std::vector<int> later, const Arrangement& both)
      : TwoGroups(std::move(later), both, both) {}

  using First = std::function<void(int number, MeshRank& rank)>;
  using Second = std::function<void(int number, MeshRank& before, MeshRank& rank)>;

  // first: with the first group alive; then its last rank ends.
  void run(const First& first, const Second& second) {
    const int ranks = static_cast<int>(later_.size());
    int left = 0;
    for (const int number : later_) left += number >= 0 ? 1 : 0;
    shardrec_local* group = nullptr;
    SR_OK(shardrec_local_create(left, left, nullptr, &group));
    std::barrier all(ranks);
    run_ranks(ranks, ranks, [&](int number, shardrec_comm* comm) {
      MeshRank earlier(comm, before_);
      SR_OK(earlier.status());
      earlier.create();
      SR_OK(earlier.status());
      first(number, earlier);
      all.arrive_and_wait();
      if (number == ranks - 1) shardrec_comm_abort(comm, "this rank ends");
      all.arrive_and_wait();
      const int again = later_[static_cast<size_t>(number)];
      if (again >= 0) {
        shardrec_comm* survivors = nullptr;
        SR_OK(shardrec_comm_create_local(group, again, nullptr, &survivors));
        {
          MeshRank rank(survivors, after_);
          SR_OK(rank.status());
          rank.create();
          SR_OK(rank.status());
          second(number, earlier, rank);
        }
        shardrec_comm_destroy(&survivors);
      }
      all.arrive_and_wait();
    });
    shardrec_local_destroy(&group);
  }

 private:
  const std::vector<int> later_;
  const Arrangement before_, after_;
};

void train_on(MeshRank& rank, int number, int64_t first, int64_t steps) {
  for (int64_t step = first; step < first + steps; ++step) {
    rank.step((3 * step + 5 * number) % MeshRank::kRows, 0.5F + static_cast<float>(number));
  }
}

struct Continued {
  const char* name;
  shardrec_replica_sync sync = SHARDREC_REPLICA_SYNC_TOUCHED;
  shardrec_sharding sharding = SHARDREC_SHARDING_ROW_WISE;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
  bool replicated_too = false;
};

class Survivors : public ::testing::TestWithParam<Continued> {
 protected:
  static Arrangement arrangement() {
    return {.sharding = GetParam().sharding,
            .optimizer = GetParam().optimizer,
            .sync = GetParam().sync,
            .replicated_too = GetParam().replicated_too};
  }
  static bool exact() { return GetParam().sync == SHARDREC_REPLICA_SYNC_EXACT; }
};

// Replica 2 is lost: ranks 0, 3, 1 and 4 go on with what they have, and average over two.
TEST_P(Survivors, KeepTheirRowsAndAverageOverThoseThatAreLeft) {
  std::vector<HeldRows> held(6);
  std::vector<float> mean;
  TwoGroups groups({0, 1, -1, 2, 3, -1}, arrangement());
  groups.run(
      [&](int number, MeshRank& rank) {
        train_on(rank, number, 0, 3);
        SR_OK(shardrec_collection_sync_replicas(rank.tables()));
        SR_OK(shardrec_collection_set_learning_rate(rank.tables(), 0, 0.0625));
        train_on(rank, number, 3, 2);
        held[static_cast<size_t>(number)] = held_by(rank, GetParam().replicated_too);
      },
      [&](int number, MeshRank& before, MeshRank& rank) {
        EXPECT_NE(shardrec_collection_sync_replicas(before.tables()), SHARDREC_OK);
        SR_OK(shardrec_collection_continue_from(rank.tables(), before.tables()));
        const HeldRows& own = held[static_cast<size_t>(number)];
        EXPECT_EQ(held_by(rank, GetParam().replicated_too), own);
        EXPECT_EQ(own.step, 5);
        EXPECT_EQ(shardrec_collection_check_replicas(rank.tables()),
                  exact() ? SHARDREC_OK : SHARDREC_DISAGREEMENT);
        SR_OK(shardrec_collection_sync_replicas(rank.tables()));
        SR_OK(shardrec_collection_check_replicas(rank.tables()));
        const std::vector<float> weights = rank.read(SHARDREC_TABLE_WEIGHTS);
        for (size_t i = 0; i < weights.size(); ++i) {
          EXPECT_EQ(weights[i], (held[0].weights[i] + held[1].weights[i]) / 2) << i;
        }
        train_on(rank, number, 5, 2);
        SR_OK(shardrec_collection_sync_replicas(rank.tables()));
        SR_OK(shardrec_collection_check_replicas(rank.tables()));
      });
}

// Ranks 2 and 5 are new ones, of replica 2: they get the rows of replica 0, and so do those of replica 1.
TEST_P(Survivors, AreCopiedToThoseThatJoin) {
  std::vector<HeldRows> held(6);
  TwoGroups groups({0, 1, 2, 3, 4, 5}, arrangement());
  groups.run(
      [&](int number, MeshRank& rank) {
        train_on(rank, number, 0, 4);
        held[static_cast<size_t>(number)] = held_by(rank, GetParam().replicated_too);
      },
      [&](int number, MeshRank& before, MeshRank& rank) {
        const bool joins = number % 3 == 2;
        SR_OK(shardrec_collection_continue_from(rank.tables(), joins ? nullptr : before.tables()));
        EXPECT_EQ(held_by(rank, GetParam().replicated_too), held[0]);
        SR_OK(shardrec_collection_check_replicas(rank.tables()));
        train_on(rank, number, 4, 2);
        SR_OK(shardrec_collection_sync_replicas(rank.tables()));
        SR_OK(shardrec_collection_check_replicas(rank.tables()));
      });
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Survivors,
    ::testing::Values(Continued{"ByRows"},
                      Continued{.name = "ByColumnsFull",
                                .sync = SHARDREC_REPLICA_SYNC_FULL,
                                .sharding = SHARDREC_SHARDING_COLUMN_WISE,
                                .optimizer = SHARDREC_OPTIMIZER_ADAM},
                      Continued{.name = "Exact", .sync = SHARDREC_REPLICA_SYNC_EXACT},
                      Continued{.name = "BesideReplicated", .replicated_too = true}),
    [](const auto& test) { return std::string(test.param.name); });

// Replica 1 has taken one step more than replica 0: all go on from there.
TEST(SurvivorsOfSteps, GoOnFromTheGroupThatHasTakenMost) {
  std::vector<HeldRows> held(4);
  TwoGroups groups({0, 1, 2, 3}, {});
  groups.run(
      [&](int number, MeshRank& rank) {
        train_on(rank, number, 0, number % 2 == 1 ? 3 : 2);
        held[static_cast<size_t>(number)] = held_by(rank);
      },
      [&](int, MeshRank& before, MeshRank& rank) {
        SR_OK(shardrec_collection_continue_from(rank.tables(), before.tables()));
        EXPECT_EQ(held_by(rank), held[1]);
        SR_OK(shardrec_collection_check_replicas(rank.tables()));
      });
}

// What a sync had begun to write on rank 2, of replica 0, is no state of the model. Where it had come to rank 3 of replica
// 1 alone, that one is not whole either.
TEST(SurvivorsOfASync, LeaveRowsThatItHasWrittenInPart) {
  for (const bool other_too : {false, true}) {
    std::vector<HeldRows> held(4);
    TwoGroups groups({0, 1, 2, 3}, {});
    groups.run(
        [&](int number, MeshRank& rank) {
          train_on(rank, number, 0, 2);
          held[static_cast<size_t>(number)] = held_by(rank);
          const auto use = capi::enter(rank.tables(), capi::Access::kExclusive);
          if (number == 2) use->collection().begin_rewrite();
          if (number == 3 && other_too) use->collection().end_rewrite();
        },
        [&](int, MeshRank& before, MeshRank& rank) {
          const shardrec_status status =
              shardrec_collection_continue_from(rank.tables(), before.tables());
          EXPECT_EQ(status, other_too ? SHARDREC_INVALID_STATE : SHARDREC_OK)
              << shardrec_last_error();
          if (other_too) {
            EXPECT_EQ(rank_of_error(), 2);
            EXPECT_NE(std::string(shardrec_last_error()).find("has written a part"),
                      std::string::npos)
                << shardrec_last_error();
          } else {
            EXPECT_EQ(held_by(rank), held[1]);
          }
        });
  }
}

// The error is every rank's, names a rank, and leaves the collection as it was.
TEST(ContinueFrom, RefusesWhatIsNotWholeOnAllRanks) {
  run_ranks(4, 4, [&](int number, shardrec_comm* comm) {
    MeshRank before(comm, {});
    SR_OK(before.status());
    before.create();
    MeshRank rank(comm, {});
    rank.create();
    train_on(before, number, 0, 2);
    train_on(rank, number, 0, 1);
    const HeldRows held = held_by(rank);
    // Ranks 1 and 2 are of different groups.
    const bool none = number == 1 || number == 2;
    EXPECT_EQ(shardrec_collection_continue_from(rank.tables(), none ? nullptr : before.tables()),
              SHARDREC_INVALID_STATE);
    EXPECT_EQ(rank_of_error(), 1);
    EXPECT_NE(std::string(shardrec_last_error()).find("rank 1 brings none"), std::string::npos)
        << shardrec_last_error();
    MeshRank other(comm, {.sharding = SHARDREC_SHARDING_COLUMN_WISE});
    other.create();
    EXPECT_EQ(shardrec_collection_continue_from(rank.tables(),
                                                number == 3 ? other.tables() : before.tables()),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(rank_of_error(), 3);
    MeshRank larger(comm, {.rows = 14});
    larger.create();
    EXPECT_EQ(shardrec_collection_continue_from(rank.tables(), larger.tables()),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_NE(std::string(shardrec_last_error()).find("different models"), std::string::npos)
        << shardrec_last_error();
    EXPECT_EQ(held_by(rank), held);
    EXPECT_EQ(shardrec_collection_continue_from(rank.tables(), rank.tables()),
              SHARDREC_INVALID_ARGUMENT);
    train_on(rank, number, 1, 1);
    SR_OK(shardrec_collection_continue_from(rank.tables(), before.tables()));
    EXPECT_EQ(held_by(rank), held_by(before));
  });
}

// What a lost replica had alone cannot go on.
TEST(ContinueFrom, IsUnsupportedWhereReplicasShareStates) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank shared(comm, {.group = 1, .sync = SHARDREC_REPLICA_SYNC_SHARDED});
    shared.create();
    MeshRank exact(comm, {.group = 1, .sync = SHARDREC_REPLICA_SYNC_EXACT});
    exact.create();
    EXPECT_EQ(shardrec_collection_continue_from(exact.tables(), shared.tables()),
              SHARDREC_UNSUPPORTED);
    EXPECT_EQ(shardrec_collection_continue_from(shared.tables(), exact.tables()),
              SHARDREC_UNSUPPORTED);
    train_on(exact, number, 0, 1);
    train_on(shared, number, 0, 1);
  });
}

// A write that has come to some ranks of a group alone leaves them in different states.
TEST(ContinueFrom, TellsRanksBeforeAWriteFromThoseBehindIt) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank rank(comm, {.group = 2});
    rank.create();
    const auto rewrites = [&] {
      return capi::enter(rank.tables(), capi::Access::kExclusive)->collection().rewrites();
    };
    const uint64_t before = rewrites();
    std::vector<float> values(MeshRank::kDim, 0.5F);
    const shardrec_tensor row = matrix(values.data(), 1, MeshRank::kDim);
    // Of rank 1 alone, and both are behind it.
    SR_OK(shardrec_collection_write_range(rank.tables(), 0, SHARDREC_TABLE_WEIGHTS, 3,
                                          number == 1 ? 1 : 0, number == 1 ? &row : nullptr));
    EXPECT_EQ(rewrites(), before + 2);
    std::vector<int64_t> numbers = {5};
    const shardrec_tensor ids = vector_of(numbers);
    SR_OK(shardrec_collection_write_rows(rank.tables(), 0, SHARDREC_TABLE_WEIGHTS,
                                         number == 0 ? &ids : nullptr,
                                         number == 0 ? &row : nullptr));
    EXPECT_EQ(rewrites(), before + 4);
  });
}

// Without a mesh all ranks are one group.
TEST(ContinueFrom, FillsACollectionWithoutAMesh) {
  run_ranks(2, 2, [&](int number, shardrec_comm* comm) {
    MeshRank before(comm, {});
    MeshRank rank(comm, {.seed = 9});
    SR_OK(before.create_collection(nullptr));
    before.create_lookup();
    SR_OK(rank.create_collection(nullptr));
    rank.create_lookup();
    train_on(before, number, 0, 3);
    SR_OK(shardrec_collection_continue_from(rank.tables(), before.tables()));
    EXPECT_EQ(held_by(rank), held_by(before));
    EXPECT_EQ(
        shardrec_collection_continue_from(rank.tables(), number == 0 ? before.tables() : nullptr),
        SHARDREC_INVALID_STATE);
    train_on(rank, number, 3, 1);
    train_on(before, number, 3, 1);
    EXPECT_EQ(held_by(rank), held_by(before));
  });
}

}  // namespace
}  // namespace shardrec::test
