// Communicators made by split: who is in, how they are numbered, and which failures they share.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "conformance/engine.h"

namespace shardrec::comm {
namespace {

constexpr Operation kTest{.name = "test", .kind = 1};

// What ends a group that does nothing but meet; it is ended soon, or something is wrong.
std::optional<core::Error> end_of(Collectives& collectives) {
  const auto start = std::chrono::steady_clock::now();
  return error_of([&] {
    while (seconds_since(start) < 20) collectives.barrier(kTest);
  });
}

// The parent's ranks of a communicator, in its order.
std::string members(Communicator& comm, int parent_rank) {
  Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
  std::string mine = std::to_string(parent_rank);
  std::string all;
  for (const ConstBytes message : collectives.all_gather(kTest, bytes_of(mine))) {
    all += text_of(message) + " ";
  }
  return all;
}

TEST_P(ExchangeConformance, SplitGroupsByColorAndOrdersByKeyThenRank) {
  if (!engine().offers(8)) GTEST_SKIP() << "needs 8 ranks";
  run_well(
      engine(), 8,
      [&](Communicator& comm) {
        const int rank = comm.rank();
        const auto halves = comm.split(rank % 2, 0);
        EXPECT_EQ(halves->size(), 4);
        EXPECT_EQ(halves->rank(), rank / 2);
        EXPECT_EQ(halves->ranks_in_process(), engine().ranks_share_a_process ? 4 : 1);
        const bool nodes_of_four = comm.ranks_per_node() == 4;  // else all are one node
        EXPECT_TRUE(nodes_of_four || !engine().ranks_share_a_process);
        EXPECT_EQ(halves->ranks_per_node(), nodes_of_four ? 2 : 4);  // two of each half
        EXPECT_EQ(members(*halves, rank), rank % 2 == 0 ? "0 2 4 6 " : "1 3 5 7 ");
        const auto reversed = comm.split(-7, -rank);
        EXPECT_EQ(reversed->rank(), 7 - rank);
        EXPECT_EQ(reversed->ranks_per_node(), comm.ranks_per_node());
        EXPECT_EQ(members(*reversed, rank), "7 6 5 4 3 2 1 0 ");
        const auto alone = comm.split(rank, 0);
        EXPECT_EQ(alone->size(), 1);
        EXPECT_EQ(members(*alone, rank), std::to_string(rank) + " ");
        const auto uneven = comm.split(rank == 0 || rank > 4 ? 1 : 2, 0);
        EXPECT_EQ(members(*uneven, rank), rank == 0 || rank > 4 ? "0 5 6 7 " : "1 2 3 4 ");
        // Nodes 0 1 1 1 are no equal blocks; 0 0 0 1 are, the last one short.
        EXPECT_EQ(uneven->ranks_per_node(), !nodes_of_four ? 4 : rank == 0 || rank > 4 ? 1 : 3);
        for (const auto& child : {halves, reversed, alone, uneven}) child->leave();
      },
      4);
}

TEST_P(ExchangeConformance, SplitNestsAndInheritsDeadlines) {
  if (!engine().offers(8)) GTEST_SKIP() << "needs 8 ranks";
  run_well(engine(), 8, [](Communicator& comm) {
    comm.set_deadlines({.step = 41, .setup = 42, .warn = 43});
    const auto half = comm.split(comm.rank() / 4, 0);
    const auto quarter = half->split(half->rank() / 2, 0);
    EXPECT_EQ(quarter->deadlines().step, 41);
    EXPECT_EQ(quarter->deadlines().setup, 42);
    EXPECT_EQ(quarter->deadlines().warn, 43);
    const int first = comm.rank() / 2 * 2;
    EXPECT_EQ(members(*quarter, comm.rank()), core::sentence(first, " ", first + 1, " "));
    quarter->leave();
    half->leave();
  });
}

TEST_P(ExchangeConformance, SplitNeedsNoCommonOrderWithOpenedChannels) {
  run_well(engine(), 2, [](Communicator& comm) {
    std::shared_ptr<Channel> channel;
    if (comm.rank() == 0) channel = comm.open_channel(Purpose::kDense);
    const auto child = comm.split(0, 0);
    if (comm.rank() == 1) channel = comm.open_channel(Purpose::kDense);
    Collectives(channel, comm.rank(), 2).barrier(kTest);
    child->leave();
  });
}

TEST_P(FailureConformance, FailureOfAChildLeavesTheParentAndTheOtherChildAlive) {
  run_well(engine(), 4, [](Communicator& comm) {
    const int half = comm.rank() / 2;
    const auto child = comm.split(half, 0);
    Collectives inside(child->open_channel(Purpose::kDense), child->rank(), child->size());
    Collectives outside(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
    inside.barrier(kTest);
    outside.barrier(kTest);  // nobody is in the child's any more
    if (half == 0) {
      if (comm.rank() == 0) child->abort("enough");
      const auto error = end_of(inside);
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_ABORTED);
      EXPECT_EQ(error->parts().rank, 0);
    } else {
      inside.barrier(kTest);
    }
    comm.check();
    outside.barrier(kTest);
    child->leave();
  });
}

TEST_P(FailureConformance, FailureOfTheParentKillsChildrenAndGrandchildren) {
  run_well(engine(), 4, [](Communicator& comm) {
    const auto half = comm.split(comm.rank() / 2, 0);
    const auto alone = half->split(half->rank(), 0);
    Collectives inside(half->open_channel(Purpose::kDense), half->rank(), half->size());
    inside.barrier(kTest);
    // All have entered; the abort may find a rank on its way out.
    (void)error_of([&] {
      Collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size()).barrier(kTest);
    });
    if (comm.rank() == 3) comm.abort("enough");
    const auto error = end_of(inside);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_ABORTED);
    EXPECT_EQ(error->parts().rank, 3);
    EXPECT_NE(error->sentence().find("split from is dead: rank 3 aborted the communicator: enough"),
              std::string::npos)
        << error->sentence();
    const auto inner = error_of([&] { alone->check(); });
    ASSERT_TRUE(inner);
    EXPECT_EQ(inner->status(), SHARDREC_ABORTED);
  });
}

TEST_P(FailureConformance, ARankThatDiesInsteadOfSplittingEndsTheOthersSplit) {
  for (const auto& [rank, error] : run(engine(), 3, [](Communicator& comm) {
         if (comm.rank() == 1) core::fail(SHARDREC_INTERNAL, "dies");
         comm.split(0, 0);
       })) {
    ASSERT_TRUE(error);
    if (rank == 1) continue;
    EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED);
    EXPECT_EQ(error->parts().rank, 1);
    EXPECT_EQ(error->parts().operation, "split");
  }
}

}  // namespace
}  // namespace shardrec::comm
