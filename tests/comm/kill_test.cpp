// Any rank may die anywhere in a step.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <vector>

#include "rank.h"

namespace shardrec::comm {
namespace {

// Where in a step the victim dies.
constexpr int kPhases = 6;

void step(Communicator& comm, Channel& channel, Collectives& collectives, int die_at) {
  const auto maybe_die = [&](int phase) {
    if (phase == die_at) core::fail(SHARDREC_INTERNAL, "this rank dies here");
  };
  maybe_die(0);
  const Ticket first = post(channel, comm.size());
  maybe_die(1);
  const Ticket second = post(channel, comm.size(), kBackward);
  receive(channel, comm.size(), first);
  maybe_die(2);
  channel.release(first);
  channel.reclaim(first);
  maybe_die(3);
  std::vector<float> data(3000, 1.0F);
  collectives.all_reduce<float>(kForward, Reduction::kSum, data);
  maybe_die(4);
  receive(channel, comm.size(), second);
  channel.release(second);
  maybe_die(5);
  channel.reclaim(second);
}

TEST(LocalEngine, KillingARandomRankAtARandomPointEndsAllOthersAtOnce) {
  std::mt19937 random(20261121);
  std::vector<double> times;
  for (int repetition = 0; repetition < 40; ++repetition) {
    const int world = 2 + static_cast<int>(random() % 7);
    const int victim = static_cast<int>(random() % static_cast<unsigned>(world));
    const int round = static_cast<int>(random() % 30);
    const int phase = static_cast<int>(random() % kPhases);
    const bool channels_live_on = random() % 2 == 0;
    std::atomic<SteadyClock::time_point> death{SteadyClock::time_point::max()};
    std::vector<std::shared_ptr<Channel>> kept(static_cast<size_t>(world));
    std::vector<double> late(static_cast<size_t>(world));
    const auto errors = run_ranks(world, [&](Communicator& comm) {
      const auto me = static_cast<size_t>(comm.rank());
      const auto channel = comm.open_channel(Purpose::kInput);
      if (channels_live_on) kept[me] = channel;
      Collectives collectives(comm.open_channel(Purpose::kDense), comm.rank(), comm.size());
      try {
        for (int i = 0;; ++i) {
          const bool dies = comm.rank() == victim && i == round;
          step(comm, *channel, collectives, dies ? phase : -1);
        }
      } catch (const core::Error&) {
        if (comm.rank() == victim) {
          death = SteadyClock::now();
        } else {
          late[me] = seconds_since(death.load());
        }
        throw;
      }
    });
    for (int rank = 0; rank < world; ++rank) {
      const auto& error = errors[static_cast<size_t>(rank)];
      ASSERT_TRUE(error);
      if (rank == victim) {
        EXPECT_EQ(error->status(), SHARDREC_INTERNAL);
      } else {
        EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED) << error->sentence();
        EXPECT_EQ(error->parts().rank, victim) << error->sentence();
      }
    }
    times.push_back(*std::max_element(late.begin(), late.end()));
  }
  // A loaded machine may hold up one of the repetitions.
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], 1.0);
  EXPECT_LT(times.back(), 10.0);
}

}  // namespace
}  // namespace shardrec::comm
