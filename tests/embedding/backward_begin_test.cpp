// A step that a lookup's own thread takes, from backward_begin to backward_wait: what is refused meanwhile, what the wait
// returns, and what happens where nobody waits. That the bits are the same is what every scenario proves
// (Deal::in_background).
#include <gtest/gtest.h>
#include <unistd.h>

#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "embedding/gradient_trainer.h"
#include "support/no_threads.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

const char* const kUnderWay = "a backward is under way";

class BackwardBegin : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, BackwardBegin, ::testing::Values(1, 2, 3));

TEST_P(BackwardBegin, RefusesAllElseUntilTheWaitAndGoesOn) {
  // No rank but the last comes to its end before all have been refused.
  const int ranks = GetParam();
  std::latch refused(ranks);
  run_ranks(ranks, ranks, [&](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    Trainer expected(comm);
    shardrec_lookup* const lookup = trainer.lookup(0);
    shardrec_lookup* const other = trainer.lookup(1);
    const auto begin = [](shardrec_lookup* of) {
      return shardrec_lookup_backward_begin(of, SHARDREC_UPDATE_APPLY);
    };
    expect_refused(begin(lookup), "before forward");
    expect_refused(shardrec_lookup_backward_wait(lookup), "without backward_begin");
    trainer.prepare(rank);
    EXPECT_EQ(shardrec_lookup_backward_begin(lookup, static_cast<shardrec_update>(3)),
              SHARDREC_INVALID_ARGUMENT);
    SR_OK(begin(lookup));

    expect_refused(begin(lookup), kUnderWay);
    expect_refused(begin(other), kUnderWay);
    expect_refused(shardrec_lookup_backward_wait(other), "without backward_begin");
    expect_refused(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY), kUnderWay);
    expect_refused(trainer.forward(0), kUnderWay);
    expect_refused(trainer.forward(1), kUnderWay);
    std::vector<float> gradient(kDim, 0.5F);
    expect_refused(Trainer::give(lookup, gradient), kUnderWay);
    std::vector<int64_t> none;
    const shardrec_tensor no_ids = vector_of(none);
    expect_refused(begin_batch(other, {.batch_size = 0, .values = &no_ids, .lengths = &no_ids}),
                   kUnderWay);
    std::vector<float> rows(kRows * kDim);
    const shardrec_tensor view = matrix(rows.data(), kRows, kDim);
    expect_refused(shardrec_collection_read_range(trainer.tables(), 0, SHARDREC_TABLE_WEIGHTS, 0,
                                                  kRows, &view),
                   kUnderWay);
    expect_refused(
        shardrec_collection_set_learning_rate(trainer.tables(), SHARDREC_ALL_TABLES, 0.7),
        kUnderWay);
    double ids = -1;  // for any thread
    SR_EXPECT_OK(shardrec_collection_stat(trainer.tables(), SHARDREC_STAT_TABLE_IDS, 0, &ids));
    refused.arrive_and_wait();

    // Any thread may wait.
    std::thread([&] { SR_EXPECT_OK(shardrec_lookup_backward_wait(lookup)); }).join();
    expect_refused(shardrec_lookup_backward_wait(lookup), "without backward_begin");
    EXPECT_EQ(trainer.step(), 1);
    trainer.prepare(rank + 3, 1);
    SR_OK(begin(other));
    SR_OK(shardrec_lookup_backward_wait(other));
    for (const int64_t id : {rank, rank + 3}) {
      expected.prepare(id);
      SR_OK(shardrec_lookup_backward(expected.lookup(), SHARDREC_UPDATE_APPLY));
    }
    EXPECT_EQ(trainer.read(), expected.read());
  });
}

TEST_P(BackwardBegin, MeetsTheBackwardAndTheSkipOfOthers) {
  run_ranks(GetParam(), GetParam(), [](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    const std::vector<float> before = trainer.read();
    const auto end = [&](shardrec_update update, bool in_background) {
      trainer.prepare(rank);
      if (!in_background) return shardrec_lookup_backward(trainer.lookup(), update);
      SR_EXPECT_OK(shardrec_lookup_backward_begin(trainer.lookup(), update));
      return shardrec_lookup_backward_wait(trainer.lookup());
    };
    SR_OK(end(rank == 0 ? SHARDREC_UPDATE_SKIP : SHARDREC_UPDATE_APPLY, rank == 0));
    SR_OK(end(rank == 0 ? SHARDREC_UPDATE_SKIP : SHARDREC_UPDATE_APPLY, rank != 0));
    EXPECT_EQ(trainer.step(), 0);
    EXPECT_EQ(trainer.read(), before);
    SR_OK(end(SHARDREC_UPDATE_ACCUMULATE, rank == 0));
    SR_OK(end(SHARDREC_UPDATE_APPLY, rank != 0));
    EXPECT_EQ(trainer.step(), 1);
    EXPECT_NE(trainer.read(), before);
  });
}

TEST_P(BackwardBegin, ReturnsInTheWaitWhatABackwardWould) {
  run_ranks(GetParam(), GetParam(), [](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    const std::vector<float> before = trainer.read();
    trainer.begin(rank);
    SR_OK(trainer.forward());
    std::vector<float> gradient(kDim, 1);
    if (rank != 0) {
      SR_OK(Trainer::give(trainer.lookup(), gradient));
    }
    SR_OK(shardrec_lookup_backward_begin(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(shardrec_lookup_backward_wait(trainer.lookup()), SHARDREC_INVALID_BATCH);
    EXPECT_NE(std::string(shardrec_last_error()).find("rank 0"), std::string::npos)
        << shardrec_last_error();
    EXPECT_EQ(trainer.read(), before);
    trainer.prepare(rank);
    SR_OK(shardrec_lookup_backward_begin(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    SR_OK(shardrec_lookup_backward_wait(trainer.lookup()));
    EXPECT_NE(trainer.read(), before);
  });
}

TEST(BackwardInBackground, FollowsGradientsThatWereSent) {
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    trainer.prepare(rank);
    SR_OK(shardrec_lookup_send_gradients(trainer.lookup(), SHARDREC_UPDATE_ACCUMULATE));
    expect_refused(shardrec_lookup_backward_begin(trainer.lookup(), SHARDREC_UPDATE_APPLY),
                   "told the other ranks SHARDREC_UPDATE_ACCUMULATE");
    SR_OK(shardrec_lookup_backward_begin(trainer.lookup(), SHARDREC_UPDATE_ACCUMULATE));
    SR_OK(shardrec_lookup_backward_wait(trainer.lookup()));
    EXPECT_EQ(trainer.step(), 0);
  });
}

TEST(BackwardInBackground, EndsWithItsCommunicator) {
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    trainer.prepare(rank);
    if (rank == 1) {
      SR_OK(shardrec_comm_abort(comm, "the test wants it"));
      return;
    }
    const shardrec_status begun =
        shardrec_lookup_backward_begin(trainer.lookup(), SHARDREC_UPDATE_APPLY);
    if (begun != SHARDREC_OK) {
      EXPECT_EQ(begun, SHARDREC_ABORTED);
      return;
    }
    EXPECT_EQ(shardrec_lookup_backward_wait(trainer.lookup()), SHARDREC_ABORTED);
    expect_refused(shardrec_lookup_backward_wait(trainer.lookup()), "without backward_begin");
  });
}

TEST(BackwardInBackground, OfALookupThatIsDestroyedEndsTheCommunicator) {
  for (const bool borrow : {false, true}) {
    std::latch looked_up(3);
    run_ranks(3, 3, [&](int rank, shardrec_comm* comm) {
      Trainer trainer(comm, borrow);
      trainer.prepare(rank);
      looked_up.arrive_and_wait();
      if (rank == 1) {
        SR_EXPECT_OK(shardrec_lookup_backward_begin(trainer.lookup(), SHARDREC_UPDATE_APPLY));
        shardrec_lookup_destroy(&trainer.lookup());
        // Nothing is under way any more: it is the communicator that refuses.
        std::vector<float> rows(kRows * kDim);
        const shardrec_tensor view = matrix(rows.data(), kRows, kDim);
        EXPECT_GE(shardrec_collection_read_range(trainer.tables(), 0, SHARDREC_TABLE_WEIGHTS, 0,
                                                 kRows, &view),
                  200);
        return;
      }
      // Without rank 1's sums, or just before it was gone.
      const shardrec_status status =
          shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY);
      EXPECT_TRUE(status == SHARDREC_OK || status == SHARDREC_PEER_FAILED) << status;
    });
  }
}

// What the thread is not there for, backward does.
int begin_without_threads() {
  int wrong = 1;
  run_ranks(1, 1, [&](int, shardrec_comm* comm) {
    Trainer trainer(comm);
    trainer.prepare(3);
    shardrec_lookup* const lookup = trainer.lookup();
    if (!may_start_no_thread()) {
      wrong = 2;
    } else if (shardrec_lookup_backward_begin(lookup, SHARDREC_UPDATE_APPLY) !=
               SHARDREC_OUT_OF_MEMORY) {
      wrong = 3;
    } else if (shardrec_lookup_backward_wait(lookup) != SHARDREC_INVALID_STATE) {
      wrong = 4;
    } else if (shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY) != SHARDREC_OK ||
               trainer.step() != 1) {
      wrong = 5;
    } else {
      wrong = 0;
    }
  });
  return wrong;
}

TEST(BackwardInBackgroundDeathTest, WithoutAThreadLeavesTheStepToBackward) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(_exit(begin_without_threads()), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace shardrec::test
