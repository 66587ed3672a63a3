// Clocks of ranks compared over links in memory, each rank with a clock of its own.
#include "comm/remote/clock_offset.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/remote/envelope.h"
#include "support/eventually.h"
#include "support/memory_link.h"
#include "world.h"

namespace shardrec::comm::remote {
namespace {

using support::MemoryLink;

int64_t true_time() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Rank r's clock is ahead of the true time by so much.
int64_t ahead(int rank) { return int64_t{rank} * 3'600'000'000'000 - (rank % 2) * 12'345'678'901; }

struct Measured {
  std::optional<core::ClockOffset> clock{};
  std::optional<core::Error> error{};
};

template <class Before>
std::vector<Measured> measure(MemoryLink& link, int ranks, double seconds, const Before& before) {
  std::vector<Measured> all(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Measured& own = all[static_cast<size_t>(rank)];
      const auto carrier = link.carrier(rank);
      const auto communicator =
          make_communicator(link.layout(rank), carrier, link.state_broadcast(rank));
      own.error = error_of([&] {
        if (!before(rank, *communicator)) return;
        own.clock = measure_clock(*communicator, *carrier, {.seconds = seconds, .now = [rank] {
                                                              return true_time() + ahead(rank);
                                                            }});
      });
      communicator->leave();
    });
  }
  for (auto& thread : threads) thread.join();
  return all;
}

TEST(ClockOffset, IsFoundWithinItsUncertaintyOnEveryLink) {
  const support::MemoryLinkOptions links[] = {{}, {.rendezvous = true}, {.delay = 0.002}};
  for (const auto& options : links) {
    const auto link = MemoryLink::make(4, options);
    const auto all = measure(*link, 4, 20, [](int, Communicator&) { return true; });
    for (int rank = 0; rank < 4; ++rank) {
      const Measured& own = all[static_cast<size_t>(rank)];
      ASSERT_TRUE(own.clock.has_value()) << own.error->sentence();
      EXPECT_EQ(own.clock->rank, rank);
      EXPECT_EQ(own.clock->reference, all[0].clock->reference);
      // Rank 0's clock shows the true time.
      EXPECT_LE(std::abs(own.clock->offset + ahead(rank)), own.clock->uncertainty);
      EXPECT_LE(own.clock->uncertainty, 1'000'000'000);
      EXPECT_EQ(own.clock->uncertainty == 0, rank == 0);
    }
  }
}

TEST(ClockOffset, TheFastestRoundTripIsBelieved) {
  const auto link = MemoryLink::make(2, {.delay = 0.02, .seed = 7});
  const auto all = measure(*link, 2, 20, [](int, Communicator&) { return true; });
  ASSERT_TRUE(all[1].clock.has_value());
  // Eight round trips of two delays in [0, 20) ms each: their mean is 20 ms, the least far below.
  EXPECT_LT(all[1].clock->uncertainty, 8'000'000);
}

TEST(ClockOffset, ARankThatDoesNotAnswerEndsItOnAll) {
  const auto link = MemoryLink::make(3);
  const auto start = std::chrono::steady_clock::now();
  const auto all = measure(*link, 3, 0.3, [](int rank, Communicator& communicator) {
    // Silent until it is told that rank 0 has given up.
    if (rank == 1) {
      EXPECT_TRUE(
          test::eventually([&] { return error_of([&] { communicator.check(); }).has_value(); }));
    }
    return rank != 1;
  });
  ASSERT_TRUE(all[0].error.has_value());
  EXPECT_EQ(all[0].error->status(), SHARDREC_TIMEOUT);
  EXPECT_EQ(all[0].error->parts().rank, 1);
  EXPECT_TRUE(all[2].error.has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(ClockOffset, ALostRankEndsItAtOnce) {
  const auto link = MemoryLink::make(3);
  const auto start = std::chrono::steady_clock::now();
  const auto all = measure(*link, 3, 60, [&](int rank, Communicator&) {
    if (rank == 2) link->cut(2);
    return rank != 2;
  });
  for (const int rank : {0, 1}) {
    const Measured& own = all[static_cast<size_t>(rank)];
    ASSERT_TRUE(own.error.has_value() || (rank == 1 && own.clock.has_value()));
    if (!own.error) continue;
    EXPECT_EQ(own.error->status(), SHARDREC_PEER_FAILED) << own.error->sentence();
    EXPECT_EQ(own.error->parts().rank, 2) << own.error->sentence();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

}  // namespace
}  // namespace shardrec::comm::remote
