// Any rank may die anywhere in a step.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "comm/rank.h"
#include "conformance/engine.h"

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

TEST_P(FailureConformance, KillingARandomRankAtARandomPointEndsAllOthersAtOnce) {
  std::mt19937 random(20261121);
  std::vector<double> times;
  for (int repetition = 0; repetition < 40; ++repetition) {
    const auto& worlds = engine().worlds;
    const int world = std::max(2, worlds[random() % worlds.size()]);
    const int victim = static_cast<int>(random() % static_cast<unsigned>(world));
    const int round = static_cast<int>(random() % 30);
    const int phase = static_cast<int>(random() % kPhases);
    const bool channels_live_on = random() % 2 == 0;
    std::atomic<SteadyClock::time_point> death{SteadyClock::time_point::max()};
    std::mutex mutex;
    std::vector<std::shared_ptr<Channel>> kept;
    double latest = 0;
    for (const auto& [rank, error] : run(engine(), world, [&](Communicator& comm) {
           const auto channel = comm.open_channel(Purpose::kInput);
           if (channels_live_on) {
             const std::lock_guard lock(mutex);
             kept.push_back(channel);
           }
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
               const double late = seconds_since(death.load());
               const std::lock_guard lock(mutex);
               latest = std::max(latest, late);
             }
             throw;
           }
         })) {
      ASSERT_TRUE(error);
      if (rank == victim) {
        EXPECT_EQ(error->status(), SHARDREC_INTERNAL);
      } else {
        EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED) << error->sentence();
        EXPECT_EQ(error->parts().rank, victim) << error->sentence();
      }
    }
    times.push_back(latest);
  }
  // A loaded machine may hold up one of the repetitions.
  std::sort(times.begin(), times.end());
  EXPECT_LT(times[times.size() / 2], 1.0);
  EXPECT_LT(times.back(), 10.0);
}

}  // namespace
}  // namespace shardrec::comm
