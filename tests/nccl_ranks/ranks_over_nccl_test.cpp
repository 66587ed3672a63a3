// Tables on devices, with NCCL between the ranks: the bits of ranks that read each other's memory; and what becomes of
// a job when NCCL, or a peer, fails. In each phase every rank is told a status, a rank and an operation in time, and
// its tables are at the step that they say they are at.
#include <gtest/gtest.h>

#include "nccl/ranks.h"
#include "nccl_ranks/job.h"

namespace shardrec::test {
namespace {

// Digests of the tables of a job that nothing happens to, by rank.
std::vector<Outcome> whole(Job job) {
  job.over_nccl = false;
  job.before_step = {};
  return train(job, true);
}

class RanksOverNccl : public ::testing::Test {
 protected:
  ~RanksOverNccl() override {
    OF_FAKE(fake_nccl_set_polls)(0);
    OF_FAKE(fake_nccl_delay_init)(-1, 0);
    OF_FAKE(fake_nccl_set_hang)(-1, 0);
    OF_FAKE(fake_nccl_set_async_error)(-1, 0);
    EXPECT_EQ(OF_FAKE(fake_nccl_violations)(), 0) << OF_FAKE(fake_nccl_last_violation)();
    EXPECT_EQ(OF_FAKE(fake_nccl_live)(), 0);
    int64_t objects = -1;
    EXPECT_EQ(shardrec_live_objects(&objects), SHARDREC_OK);
    EXPECT_EQ(objects, 0);
  }

  static void expect_equal(const std::vector<Outcome>& outcomes,
                           const std::vector<Outcome>& expected) {
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      EXPECT_EQ(outcomes[rank].failed, "") << outcomes[rank].sentence;
      EXPECT_EQ(outcomes[rank].step, kSteps);
      EXPECT_EQ(outcomes[rank].digest, expected[rank].digest) << "rank " << rank;
    }
  }

  // Every rank failed so, within the time, and has the tables of its step.
  static void expect_failed(const std::vector<Outcome>& outcomes,
                            const std::vector<Outcome>& expected, shardrec_status status,
                            int64_t failed_rank, double seconds) {
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      const Outcome& outcome = outcomes[rank];
      SCOPED_TRACE("rank " + std::to_string(rank) + ": " + outcome.failed + ": " +
                   outcome.sentence);
      EXPECT_EQ(outcome.status, status);
      EXPECT_EQ(outcome.rank, failed_rank);
      EXPECT_FALSE(outcome.operation.empty());
      EXPECT_LT(outcome.seconds, seconds);
      ASSERT_GE(outcome.step, 0);
      ASSERT_LE(outcome.step, kSteps);
      EXPECT_EQ(outcome.digest, expected[rank].digests[static_cast<size_t>(outcome.step)])
          << "tables at step " << outcome.step;
    }
  }
};

TEST_F(RanksOverNccl, HaveTheBitsOfRanksThatShareMemory) {
  for (const int ranks : {2, 3, 4}) {
    for (const shardrec_sharding kind :
         {SHARDREC_SHARDING_TABLE_WISE, SHARDREC_SHARDING_ROW_WISE, SHARDREC_SHARDING_COLUMN_WISE,
          SHARDREC_SHARDING_DATA_PARALLEL}) {
      for (const bool of_host : {false, true}) {
        SCOPED_TRACE(std::to_string(ranks) + " ranks, kind " + std::to_string(kind));
        const Job job{.ranks = ranks, .kind = kind, .of_host = of_host};
        expect_equal(train(job), whole(job));
      }
    }
  }
}

TEST_F(RanksOverNccl, AskUntilCallsThatAreInProgressAreOver) {
  OF_FAKE(fake_nccl_set_polls)(3);
  const Job job{.ranks = 3};
  expect_equal(train(job), whole(job));
}

TEST_F(RanksOverNccl, WaitForARankWhoseCommunicatorIsLate) {
  OF_FAKE(fake_nccl_delay_init)(1, 200);
  const Job job{.ranks = 3};
  expect_equal(train(job), whole(job));
}

TEST_F(RanksOverNccl, AreToldWhenARankNeverJoins) {
  OF_FAKE(fake_nccl_delay_init)(1, -1);
  const auto outcomes = train({.ranks = 3, .setup_seconds = 1});
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.failed, "create");
    EXPECT_EQ(outcome.status, SHARDREC_TIMEOUT) << outcome.sentence;
    EXPECT_EQ(outcome.operation, "collection_create");
    EXPECT_LT(outcome.seconds, 6);
  }
}

// Its part of the gradients of step 0 does not end, nobody's host waits for it, and the rank leaves: the others hear of
// that from their watchdogs, long before the deadline.
TEST_F(RanksOverNccl, HearOfARankThatLeavesWhileItsDeviceOwesThemAMessage) {
  Job job{.ranks = 3};
  const auto expected = whole(job);
  OF_FAKE(fake_nccl_set_hang)(2, 2);
  job.before_step = [](int rank, int step) { return rank != 2 || step < 1; };
  const auto outcomes = train(job);
  const std::vector<Outcome> left(outcomes.begin(), outcomes.begin() + 2);
  expect_failed(left, expected, SHARDREC_PEER_FAILED, 2, 5);
}

// Operations of the lanes: the n-th of the ids is of step n; of the others, forward and backward take turns.
class FailuresOverNccl : public RanksOverNccl, public ::testing::WithParamInterface<int64_t> {
 protected:
  // Tables that are cut by columns exchange sums of columns before their update.
  static shardrec_sharding kind() {
    return GetParam() % 2 == 0 ? SHARDREC_SHARDING_COLUMN_WISE : SHARDREC_SHARDING_ROW_WISE;
  }
};

TEST_P(FailuresOverNccl, AnErrorThatNcclTellsOfLaterEndsTheJobOnAllRanks) {
  const Job job{.ranks = 3, .kind = kind()};
  const auto expected = whole(job);
  OF_FAKE(fake_nccl_set_async_error)(1, GetParam());
  expect_failed(train(job), expected, SHARDREC_PEER_FAILED, 1, 5);
}

TEST_P(FailuresOverNccl, AnOperationThatHangsIsATimeoutOnAllRanks) {
  const Job job{.ranks = 3, .kind = kind(), .step_seconds = 1};
  const auto expected = whole(job);
  OF_FAKE(fake_nccl_set_hang)(2, GetParam());
  const auto outcomes = train(job);
  ASSERT_GE(outcomes[0].rank, 0);
  expect_failed(outcomes, expected, SHARDREC_TIMEOUT, outcomes[0].rank, 6);
}

TEST_P(FailuresOverNccl, APeerThatIsGoneWhileItsMessageIsAwaitedEndsTheJob) {
  const int last = static_cast<int>(std::min<int64_t>(GetParam(), kSteps) - 1);
  Job job{.ranks = 3, .kind = kind()};
  const auto expected = whole(job);
  job.before_step = [&](int rank, int step) { return rank != 2 || step < last; };
  const auto outcomes = train(job);
  const std::vector<Outcome> left(outcomes.begin(), outcomes.begin() + 2);
  expect_failed(left, expected, SHARDREC_PEER_FAILED, 2, 5);
}

TEST_P(FailuresOverNccl, SurvivorsGoOnInANewGroup) {
  OF_FAKE(fake_nccl_set_hang)(2, GetParam());
  (void)train({.ranks = 3, .step_seconds = 0.5});
  OF_FAKE(fake_nccl_set_hang)(-1, 0);
  const Job job{.ranks = 2};
  expect_equal(train(job), whole(job));
}

INSTANTIATE_TEST_SUITE_P(Operations, FailuresOverNccl, ::testing::Range(int64_t{1}, int64_t{7}));

}  // namespace
}  // namespace shardrec::test
