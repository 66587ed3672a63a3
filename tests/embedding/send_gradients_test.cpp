// Gradients that are sent ahead of backward: who waits for whom, which calls are refused meanwhile,
// and what a step is made of whose ranks do not all send early. That the bits are the same is what
// every scenario proves (Deal::sends_early).
#include <gtest/gtest.h>

#include <latch>
#include <memory>
#include <string>
#include <vector>

#include "embedding/gradient_trainer.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

class SendGradients : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, SendGradients, ::testing::Values(1, 2, 3, 4));

TEST_P(SendGradients, WaitsForNoRankThatHasLookedUpAndComputes) {
  // The others come to their gradients when rank 0 has sent its own.
  std::latch sent(1);
  run_ranks(GetParam(), GetParam(), [&](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    trainer.begin(rank);
    SR_OK(trainer.forward());
    if (rank != 0) sent.wait();
    std::vector<float> gradient(kDim, 1);
    SR_EXPECT_OK(Trainer::give(trainer.lookup(), gradient));
    SR_EXPECT_OK(shardrec_lookup_send_gradients(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    if (rank == 0) sent.count_down();
    SR_OK(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(trainer.step(), 1);
  });
}

TEST_P(SendGradients, RefusesWhatMustComeBeforeOrAfterAndGoesOn) {
  run_ranks(GetParam(), GetParam(), [](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    Trainer expected(comm);
    shardrec_lookup* const lookup = trainer.lookup(0);
    shardrec_lookup* const other = trainer.lookup(1);
    const auto send = [](shardrec_lookup* of) {
      return shardrec_lookup_send_gradients(of, SHARDREC_UPDATE_APPLY);
    };
    expect_refused(send(lookup), "before forward");
    trainer.begin(rank);
    expect_refused(send(lookup), "before forward");
    SR_OK(trainer.forward());
    trainer.prepare(rank + 3, 1);
    trainer.begin(rank);  // evaluation: what the other one has looked up is not asked for any more
    SR_OK(trainer.forward());
    std::vector<float> gradient(kDim, 0.5F);
    SR_OK(Trainer::give(lookup, gradient));
    for (const auto none : {SHARDREC_UPDATE_SKIP, static_cast<shardrec_update>(3)}) {
      EXPECT_EQ(shardrec_lookup_send_gradients(lookup, none), SHARDREC_INVALID_ARGUMENT);
    }
    EXPECT_EQ(shardrec_lookup_backward(lookup, static_cast<shardrec_update>(3)),
              SHARDREC_INVALID_ARGUMENT);
    SR_OK(send(lookup));

    expect_refused(send(lookup), "twice");
    expect_refused(Trainer::give(lookup, gradient), "after send_gradients");
    expect_refused(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_SKIP),
                   "with SHARDREC_UPDATE_SKIP after send_gradients");
    expect_refused(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_ACCUMULATE),
                   "with SHARDREC_UPDATE_ACCUMULATE after");
    expect_refused(trainer.forward(), "the output is gone");
    std::vector<int64_t> none;
    const shardrec_tensor no_ids = vector_of(none);
    expect_refused(begin_batch(lookup, {.batch_size = 0, .values = &no_ids, .lengths = &no_ids}),
                   "under way");
    const std::string under_way = "while the gradients of a lookup are under way";
    expect_refused(send(other), under_way);
    expect_refused(shardrec_lookup_backward(other, SHARDREC_UPDATE_APPLY), under_way);
    expect_refused(shardrec_lookup_backward(other, SHARDREC_UPDATE_SKIP), under_way);
    std::vector<float> rows(kRows * kDim);
    std::vector<int64_t> ids = {1, 2};
    const shardrec_tensor view = matrix(rows.data(), kRows, kDim);
    const shardrec_tensor two = matrix(rows.data(), 2, kDim);
    const shardrec_tensor names = vector_of(ids);
    shardrec_collection* const tables = trainer.tables();
    expect_refused(
        shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, kRows, &view),
        under_way);
    expect_refused(
        shardrec_collection_write_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, kRows, &view),
        under_way);
    expect_refused(shardrec_collection_read_rows(tables, 0, SHARDREC_TABLE_WEIGHTS, &names, &two),
                   under_way);
    expect_refused(shardrec_collection_write_rows(tables, 0, SHARDREC_TABLE_WEIGHTS, &names, &two),
                   under_way);
    // What is known of the batch is known still, and another one may begin.
    int32_t done = -1;
    SR_EXPECT_OK(shardrec_lookup_all_done(lookup, &done));
    EXPECT_EQ(done, 0);
    trainer.begin(rank + 3, 1);
    expect_refused(trainer.forward(1), under_way);

    SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
    SR_OK(trainer.forward(1));
    SR_OK(Trainer::give(other, gradient));
    SR_OK(shardrec_lookup_backward(other, SHARDREC_UPDATE_APPLY));
    for (const int64_t id : {rank, rank + 3}) {
      expected.begin(id);
      SR_OK(expected.forward());
      SR_OK(Trainer::give(expected.lookup(), gradient));
      SR_OK(shardrec_lookup_backward(expected.lookup(), SHARDREC_UPDATE_APPLY));
    }
    EXPECT_EQ(trainer.step(), 2);
    EXPECT_EQ(trainer.read(), expected.read());
  });
}

TEST_P(SendGradients, WithoutAnOutputsGradientIsABadBatchInBackwardOnAllRanks) {
  run_ranks(GetParam(), GetParam(), [](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    const std::vector<float> before = trainer.read();
    trainer.begin(rank);
    SR_OK(trainer.forward());
    std::vector<float> gradient(kDim, 1);
    if (rank != 0) {
      SR_OK(Trainer::give(trainer.lookup(), gradient));
    }
    SR_OK(shardrec_lookup_send_gradients(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY),
              SHARDREC_INVALID_BATCH);
    EXPECT_NE(std::string(shardrec_last_error()).find("rank 0"), std::string::npos)
        << shardrec_last_error();
    EXPECT_EQ(trainer.read(), before);
    trainer.prepare(rank);
    SR_OK(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    EXPECT_NE(trainer.read(), before);
  });
}

TEST(SendGradientsEarly, OfSomeRanksMeetSkipsAndAccumulatesOfOthers) {
  run_ranks(3, 3, [](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    shardrec_lookup* const lookup = trainer.lookup();
    const std::vector<float> before = trainer.read();
    trainer.prepare(rank);
    if (rank != 1) {
      SR_OK(shardrec_lookup_send_gradients(lookup, SHARDREC_UPDATE_APPLY));
    }
    SR_OK(rank == 1 ? shardrec_lookup_backward(lookup, SHARDREC_UPDATE_SKIP)
                    : shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(trainer.step(), 0);

    trainer.prepare(rank);
    if (rank == 2) {
      SR_OK(shardrec_lookup_send_gradients(lookup, SHARDREC_UPDATE_ACCUMULATE));
      expect_refused(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY),
                     "told the other ranks SHARDREC_UPDATE_ACCUMULATE");
    }
    EXPECT_EQ(rank == 2 ? shardrec_lookup_backward(lookup, SHARDREC_UPDATE_ACCUMULATE)
                        : shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY),
              SHARDREC_INVALID_BATCH);
    EXPECT_NE(std::string(shardrec_last_error()).find("rank 2"), std::string::npos)
        << shardrec_last_error();
    EXPECT_EQ(trainer.read(), before);
  });
}

TEST(SendGradientsEarly, FixTheSettingsOfTheStep) {
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    Trainer trainer(comm);
    Trainer expected(comm);
    const auto set = [](const Trainer& of, double rate) {
      SR_EXPECT_OK(shardrec_collection_set_learning_rate(of.tables(), SHARDREC_ALL_TABLES, rate));
    };
    // Rank 1 changes them behind its step, rank 0 between the halves: to both it is the next one's.
    trainer.prepare(3);
    if (rank == 0) {
      SR_OK(shardrec_lookup_send_gradients(trainer.lookup(), SHARDREC_UPDATE_APPLY));
      set(trainer, 0.7);
    }
    SR_OK(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    set(trainer, 0.7);
    trainer.prepare(4);
    SR_OK(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    for (const int64_t id : {3, 4}) {
      expected.prepare(id);
      SR_OK(shardrec_lookup_backward(expected.lookup(), SHARDREC_UPDATE_APPLY));
      set(expected, 0.7);
    }
    EXPECT_EQ(trainer.read(), expected.read());

    trainer.prepare(5);
    if (rank == 0) {
      SR_OK(shardrec_lookup_send_gradients(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    }
    set(trainer, 0.2);
    EXPECT_EQ(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY),
              SHARDREC_INVALID_BATCH);
    EXPECT_NE(std::string(shardrec_last_error()).find("differ"), std::string::npos)
        << shardrec_last_error();
    EXPECT_EQ(trainer.step(), 2);
  });
}

// borrow: the gradients that are lent end with the lookup, so that who reads them later reads
// memory that is gone.
TEST(SendGradientsEarly, OfALookupThatIsDestroyedEndTheCommunicator) {
  for (const bool borrow : {false, true}) {
    std::latch all_sent(3);
    run_ranks(3, 3, [&](int rank, shardrec_comm* comm) {
      Trainer trainer(comm, borrow);
      trainer.begin(rank);
      SR_OK(trainer.forward());
      auto gradient = std::make_unique<std::vector<float>>(kDim, 1.0F);
      SR_OK(Trainer::give(trainer.lookup(), *gradient));
      SR_EXPECT_OK(shardrec_lookup_send_gradients(trainer.lookup(), SHARDREC_UPDATE_APPLY));
      all_sent.arrive_and_wait();
      if (rank == 1) {
        shardrec_lookup_destroy(&trainer.lookup());
        gradient.reset();
        return;
      }
      // The sums over columns of rank 1 never come.
      EXPECT_EQ(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY),
                SHARDREC_PEER_FAILED);
      EXPECT_NE(std::string(shardrec_last_error()).find("rank 1"), std::string::npos)
          << shardrec_last_error();
      expect_refused(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY),
                     "before forward");
    });
  }
}

TEST(SendGradientsEarly, OfACommunicatorThatDiesAreNotLentAnyMore) {
  std::latch all_sent(2);
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    Trainer trainer(comm, true);
    trainer.prepare(rank);
    SR_EXPECT_OK(shardrec_lookup_send_gradients(trainer.lookup(), SHARDREC_UPDATE_APPLY));
    all_sent.arrive_and_wait();
    SR_OK(shardrec_comm_abort(comm, "enough"));
    EXPECT_EQ(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY), SHARDREC_ABORTED);
    expect_refused(shardrec_lookup_backward(trainer.lookup(), SHARDREC_UPDATE_APPLY),
                   "before forward");
  });
}

}  // namespace
}  // namespace shardrec::test
