// What is made on a communicator ends with it, and keeps its deadlines.
#include "comm/membership.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "comm/local/local_group.h"
#include "core/error.h"

namespace shardrec::comm {
namespace {

void run(int ranks, const std::function<void(Membership&, int)>& body) {
  const auto group = local::make_group(ranks, ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Membership membership(local::join(group, rank));
      body(membership, rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Membership, IsClosedForAllThatWasSplitFromIt) {
  run(2, [](Membership& whole, int rank) {
    const auto half = whole.split(whole.communicator(), rank, 0);
    ASSERT_NE(half, nullptr);
    EXPECT_EQ(half->communicator().size(), 1);
    EXPECT_TRUE(half->is_up());
    const auto quarter = half->split(half->communicator(), 0, 0);
    whole.close();
    for (const Membership* one : {&whole, half.get(), quarter.get()}) {
      EXPECT_TRUE(one->closed());
      EXPECT_FALSE(one->is_up());
      EXPECT_THROW(one->require_open(), core::Error);
    }
  });
}

TEST(Membership, OfANegativeColorIsNone) {
  run(2, [](Membership& whole, int rank) {
    EXPECT_EQ(whole.split(whole.communicator(), rank == 0 ? -7 : 1, 0) == nullptr, rank == 0);
    EXPECT_TRUE(whole.is_up());
  });
}

TEST(Membership, PartsWithoutAHandleHaveItsDeadlinesAndSplitOnesTheirOwn) {
  run(2, [](Membership& whole, int rank) {
    const auto part = whole.communicator().split(0, rank);
    const auto child = whole.split(whole.communicator(), 0, rank);
    const double before = child->communicator().deadlines().step;
    whole.add_part(part);
    whole.set_deadline(&Deadlines::step, before + 7);
    EXPECT_EQ(part->deadlines().step, before + 7);
    EXPECT_EQ(whole.communicator().deadlines().step, before + 7);
    EXPECT_EQ(child->communicator().deadlines().step, before);
  });
}

TEST(Membership, ThatIsDisconnectedDisconnectsAllThatWasSplitFromIt) {
  run(1, [](Membership& whole, int) {
    const auto child = whole.split(whole.communicator(), 0, 0);
    const auto grandchild = child->split(child->communicator(), 0, 0);
    whole.disconnect();
    for (Membership* one : {&whole, child.get(), grandchild.get()}) {
      EXPECT_FALSE(one->closed());
      EXPECT_THROW(one->split(one->communicator(), 0, 0), core::Error);
    }
  });
}

TEST(Membership, CountsTheCollectionsOnIt) {
  run(1, [](Membership& whole, int) {
    Membership& same = whole;
    EXPECT_EQ(whole.next_collection(), 0U);
    EXPECT_EQ(same.next_collection(), 1U);
  });
}

}  // namespace
}  // namespace shardrec::comm
