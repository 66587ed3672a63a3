// How a communicator of the `local` engine dies: every rank is told, in time, by name, for good.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/log.h"
#include "world.h"

namespace shardrec::comm {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr Operation kForward{.name = "forward", .kind = 1};
constexpr Operation kBackward{.name = "backward", .kind = 2};

#define EXPECT_SAYS(error, text) \
  EXPECT_NE((error).sentence().find(text), std::string::npos) << (error).sentence()

// One exchange without content.
Ticket post(Channel& channel, int world, const Operation& operation = kForward) {
  const std::vector<ConstBytes> send(static_cast<size_t>(world));
  return channel.post(operation, send, nullptr);
}
void receive(Channel& channel, int world, Ticket ticket) {
  std::vector<ConstBytes> received(static_cast<size_t>(world));
  channel.receive(ticket, received);
}

// A rank in this thread's hands: its communicator and one channel.
struct Rank {
  Rank(const std::shared_ptr<local::Group>& group, int rank)
      : comm(local::join(group, rank)), channel(comm->open_channel(Purpose::kOutput)) {
    comm->set_deadlines({.step = 60, .setup = 60, .warn = 30});
  }
  std::shared_ptr<Communicator> comm;
  std::shared_ptr<Channel> channel;
};

// Starts `call` in a thread, gives it time to fall asleep, runs `event`, returns what call threw.
core::Error thrown_while_waiting(const std::function<void()>& call,
                                 const std::function<void()>& event) {
  std::optional<core::Error> error;
  std::thread waiter([&] { error = error_of(call); });
  std::this_thread::sleep_for(milliseconds(20));
  event();
  const auto start = SteadyClock::now();
  waiter.join();
  EXPECT_LT(seconds_since(start), 1.0);
  EXPECT_TRUE(error);
  return error ? *error : core::Error(SHARDREC_OK, "nothing was thrown");
}

TEST(LocalEngine, PeerDestroyedEndsAWaitInReceiveWithPeerFailed) {
  const auto group = local::make_group(3, 3);
  Rank zero(group, 0);
  Rank one(group, 1);
  auto two = std::make_unique<Rank>(group, 2);
  post(*one.channel, 3);
  const auto error = thrown_while_waiting(
      [&] { receive(*zero.channel, 3, post(*zero.channel, 3)); }, [&] { two->comm.reset(); });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error.parts().rank, 2);
  EXPECT_EQ(error.parts().operation, "forward");
  EXPECT_EQ(error.parts().sequence, 0);
  EXPECT_SAYS(error,
              "rank 2 destroyed its communicator without closing it, and this rank 0 waited");
  EXPECT_SAYS(error, "\"forward\" (exchange 0)");
  // The other survivor is told too, of the same rank, in what it does.
  const auto other = error_of([&] { post(*one.channel, 3, kBackward); });
  ASSERT_TRUE(other);
  EXPECT_EQ(other->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(other->parts().rank, 2);
  EXPECT_EQ(other->parts().operation, "backward");
  EXPECT_SAYS(*other, "rank 0 waited");
  EXPECT_SAYS(*other, "\"backward\" (exchange 1) of this rank 1");
}

TEST(LocalEngine, PeerDestroyedEndsAWaitInReclaimWithPeerFailed) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  Rank one(group, 1);
  const Ticket ticket = post(*zero.channel, 2);
  receive(*one.channel, 2, post(*one.channel, 2));  // and keeps the views
  receive(*zero.channel, 2, ticket);
  zero.channel->release(ticket);
  const auto error =
      thrown_while_waiting([&] { zero.channel->reclaim(ticket); }, [&] { one.comm.reset(); });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error.parts().rank, 1);
  EXPECT_EQ(error.parts().operation, "forward");
}

TEST(LocalEngine, PeerDestroyedBeforeThePostEndsALaterWaitAtOnce) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  {
    const Rank one(group, 1);
  }
  zero.comm->check();  // nobody has needed it yet
  const auto start = SteadyClock::now();
  const auto error = error_of([&] { receive(*zero.channel, 2, post(*zero.channel, 2)); });
  EXPECT_LT(seconds_since(start), 1.0);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error->parts().rank, 1);
  EXPECT_EQ(error_of([&] { zero.comm->check(); })->status(), SHARDREC_PEER_FAILED);
}

TEST(LocalEngine, WhatAPeerPostedBeforeItsEndIsStillReceived) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  {
    Rank one(group, 1);
    post(*one.channel, 2);
  }
  const Ticket ticket = post(*zero.channel, 2);
  receive(*zero.channel, 2, ticket);
  zero.channel->release(ticket);
  zero.channel->reclaim(ticket);
  zero.comm->check();
}

TEST(LocalEngine, DestroyedChannelOfALivingPeerEndsTheWaitForIt) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  Rank one(group, 1);
  const auto error = thrown_while_waiting(
      [&] { receive(*zero.channel, 2, post(*zero.channel, 2)); }, [&] { one.channel.reset(); });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error.parts().rank, 1);
  EXPECT_SAYS(error, "rank 1 destroyed its side of \"forward\"");
}

TEST(LocalEngine, OrderlyLeaveHarmsNobodyUntilSomebodyWaitsForTheRank) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  auto one = std::make_unique<Rank>(group, 1);
  const Ticket ticket = post(*zero.channel, 2);
  const Ticket theirs = post(*one->channel, 2);
  receive(*one->channel, 2, theirs);
  one->channel->release(theirs);
  one->comm->leave();
  // The rank itself is out; what it posted and released counts.
  const auto closed = error_of([&] { post(*one->channel, 2); });
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->status(), SHARDREC_CLOSED);
  one.reset();
  receive(*zero.channel, 2, ticket);
  zero.channel->release(ticket);
  zero.channel->reclaim(ticket);
  zero.comm->check();
  const auto error = error_of([&] { receive(*zero.channel, 2, post(*zero.channel, 2)); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error->parts().rank, 1);
  EXPECT_SAYS(*error, "rank 1 has closed");
}

TEST(LocalEngine, DisconnectDuringAnOwnWaitEndsItWithClosedAndThePeersWithPeerFailed) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  Rank one(group, 1);
  const auto error = thrown_while_waiting([&] { receive(*one.channel, 2, post(*one.channel, 2)); },
                                          [&] { one.comm->disconnect(); });
  EXPECT_EQ(error.status(), SHARDREC_CLOSED);
  const auto peer = error_of([&] { post(*zero.channel, 2); });
  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(peer->parts().rank, 1);
  EXPECT_SAYS(*peer, "rank 1 gave up \"forward\"");
}

TEST(LocalEngine, FailNamesTheRankAndTheOperationItLeaves) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  Rank one(group, 1);
  const auto error =
      thrown_while_waiting([&] { receive(*zero.channel, 2, post(*zero.channel, 2)); },
                           [&] { one.comm->fail("forward of lookup 3"); });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error.parts().rank, 1);
  EXPECT_SAYS(error, "rank 1 gave up \"forward of lookup 3\"");
  EXPECT_SAYS(error, "\"forward\" (exchange 0) of this rank 0");
}

TEST(LocalEngine, AbortFromAnotherThreadEndsEveryWaitWithRankAndReason) {
  const auto group = local::make_group(3, 3);
  Rank zero(group, 0);
  Rank one(group, 1);
  Rank two(group, 2);
  std::optional<core::Error> second;
  std::thread other(
      [&] { second = error_of([&] { receive(*one.channel, 3, post(*one.channel, 3)); }); });
  const auto error =
      thrown_while_waiting([&] { receive(*zero.channel, 3, post(*zero.channel, 3)); },
                           [&] { zero.comm->abort("the job was cancelled"); });
  other.join();
  EXPECT_EQ(error.status(), SHARDREC_ABORTED);
  EXPECT_EQ(error.parts().rank, 0);
  EXPECT_SAYS(error, "this rank 0 aborted the communicator: the job was cancelled");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->status(), SHARDREC_ABORTED);
  EXPECT_SAYS(*second, "rank 0 aborted the communicator: the job was cancelled");
  const auto third = error_of([&] { post(*two.channel, 3); });
  ASSERT_TRUE(third);
  EXPECT_EQ(third->status(), SHARDREC_ABORTED);
}

TEST(LocalEngine, TheFirstFailureIsKeptByEveryCallOfEveryRank) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  Rank one(group, 1);
  const Ticket open = post(*zero.channel, 2);
  one.comm->abort("first");
  zero.comm->abort("second");
  one.comm->fail("third");
  const std::function<void()> calls[] = {
      [&] { zero.comm->check(); },
      [&] { one.comm->check(); },
      [&] { post(*zero.channel, 2); },
      [&] { receive(*zero.channel, 2, open); },
      [&] { zero.channel->reclaim(open); },
      [&] { post(*one.channel, 2); },
      [&] { Collectives(one.comm->open_channel(Purpose::kDense), 1, 2).barrier(kForward); },
      [&] { zero.comm->split(0, 0); },
  };
  for (const auto& call : calls) {
    const auto error = error_of(call);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_ABORTED);
    EXPECT_EQ(error->parts().rank, 1);
    EXPECT_SAYS(*error, "rank 1 aborted the communicator: first");
  }
  // A rank that joins a dead group learns it in its first call, and nothing hangs in the end.
  zero.channel->release(open);
}

TEST(LocalEngine, LateRankEndsTheWaitWithTimeoutInTimeAndByName) {
  double fastest = 60;
  for (int attempt = 0; attempt < 5 && fastest > 0.1; ++attempt) {
    const auto group = local::make_group(4, 4);
    Rank zero(group, 0);
    Rank one(group, 1);
    Rank two(group, 2);
    post(*one.channel, 4);
    zero.comm->set_deadlines({.step = 0.05, .setup = 60, .warn = 30});
    const Ticket ticket = post(*zero.channel, 4);
    const auto start = SteadyClock::now();
    const auto error = error_of([&] { receive(*zero.channel, 4, ticket); });
    const double seconds = seconds_since(start);
    EXPECT_GE(seconds, 0.05);
    fastest = std::min(fastest, seconds);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
    EXPECT_EQ(error->parts().rank, 2);  // rank 3 is late too
    EXPECT_EQ(error->parts().operation, "forward");
    EXPECT_SAYS(*error,
                "rank 2 did not come to \"forward\" (exchange 0) within 0.05 s of this rank 0");
    // The late rank learns that it was the one.
    const auto late = error_of([&] { post(*two.channel, 4); });
    ASSERT_TRUE(late);
    EXPECT_EQ(late->status(), SHARDREC_TIMEOUT);
    EXPECT_SAYS(*late, "this rank 2 did not come to \"forward\"");
  }
  EXPECT_LE(fastest, 0.1);
}

TEST(LocalEngine, SlowReaderEndsAReclaimWithTimeout) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  Rank one(group, 1);
  const Ticket ticket = post(*zero.channel, 2);
  receive(*one.channel, 2, post(*one.channel, 2));
  receive(*zero.channel, 2, ticket);
  zero.channel->release(ticket);
  zero.comm->set_deadlines({.step = 0.02, .setup = 60, .warn = 30});
  const auto error = error_of([&] { zero.channel->reclaim(ticket); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
  EXPECT_EQ(error->parts().rank, 1);
  EXPECT_SAYS(*error, "rank 1 did not finish reading \"forward\"");
}

TEST(LocalEngine, SetupOperationsWaitUnderTheSetupDeadline) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  zero.comm->set_deadlines({.step = 60, .setup = 0.02, .warn = 30});
  EXPECT_EQ(zero.comm->deadlines().setup, 0.02);
  const auto error = error_of([&] {
    receive(*zero.channel, 2,
            post(*zero.channel, 2, {.name = "create", .patience = Patience::kSetup}));
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
  EXPECT_SAYS(*error, "it has not joined yet");
}

TEST(LocalEngine, RefusesDeadlinesThatAreNotPositive) {
  const auto group = local::make_group(1, 1);
  const auto comm = local::join(group, 0);
  for (const double bad : {0.0, -1.0, std::nan("")}) {
    const auto error = error_of([&] { comm->set_deadlines({.step = bad}); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
  }
  EXPECT_EQ(comm->deadlines().step, Deadlines{}.step);
}

TEST(LocalEngine, ALongWaitWarnsOncePerWaitNamingTheLateRanks) {
  while (core::next_log(milliseconds(0))) {
  }
  const auto group = local::make_group(3, 3);
  Rank zero(group, 0);
  Rank one(group, 1);
  zero.comm->set_deadlines({.step = 60, .setup = 60, .warn = 0.02});
  post(*one.channel, 3);
  std::thread waiter([&] { receive(*zero.channel, 3, post(*zero.channel, 3)); });
  std::this_thread::sleep_for(milliseconds(120));
  Rank two(group, 2);
  post(*two.channel, 3);
  waiter.join();
  const auto message = core::next_log(milliseconds(0));
  ASSERT_TRUE(message);
  EXPECT_EQ(message->level, SHARDREC_LOG_WARNING);
  EXPECT_EQ(message->rank, 0);
  EXPECT_EQ(message->text,
            "rank 0 has waited 0.02 s in \"forward\" (exchange 0) for rank 2 (has not joined yet)");
  EXPECT_FALSE(core::next_log(milliseconds(0)));
}

// Three ranks, of which rank 1 does something else. All get MISMATCH, and none gets data.
std::vector<core::Error> mismatch(const std::function<void(Communicator&, Collectives&)>& call) {
  std::vector<core::Error> errors;
  for (const auto& error : run_ranks(3, [&](Communicator& comm) {
         Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
         collectives.barrier(kForward);
         call(comm, collectives);
         ADD_FAILURE() << "rank " << comm.rank() << " was given a mismatched exchange";
       })) {
    EXPECT_TRUE(error);
    if (!error) continue;
    EXPECT_EQ(error->status(), SHARDREC_MISMATCH) << error->sentence();
    EXPECT_EQ(error->parts().sequence, 1);
    errors.push_back(*error);
  }
  return errors;
}

TEST(LocalEngine, DifferentOperationsOfOneExchangeAreAMismatchNamingBoth) {
  for (int repetition = 0; repetition < 20; ++repetition) {
    const auto errors = mismatch([](Communicator& comm, Collectives& collectives) {
      collectives.barrier(comm.rank() == 1 ? kBackward : kForward);
    });
    ASSERT_EQ(errors.size(), 3U);
    for (const auto& error : errors) {
      EXPECT_SAYS(error, "\"forward\"");
      EXPECT_SAYS(error, "\"backward\"");
    }
    // Those in "forward" are told of rank 1, rank 1 of one of them.
    EXPECT_EQ(errors[0].parts().rank, 1);
    EXPECT_EQ(errors[2].parts().rank, 1);
    EXPECT_NE(errors[1].parts().rank, 1);
    EXPECT_EQ(errors[0].parts().operation, "forward");
    EXPECT_EQ(errors[1].parts().operation, "backward");
    EXPECT_SAYS(errors[0], "rank 1 is in \"backward\" (exchange 1) while ");
    EXPECT_SAYS(errors[1], "while this rank 1 is in \"backward\"");
  }
}

TEST(LocalEngine, DifferentDetailsSizesCollectivesReductionsAndRootsAreMismatches) {
  const std::function<void(int, Collectives&)> deviations[] = {
      [](int rank, Collectives& c) {
        c.barrier({.name = "step", .kind = 1, .detail = rank == 1 ? 5U : 4U});
      },
      [](int rank, Collectives& c) {
        std::vector<float> data(rank == 1 ? 6 : 5);
        c.all_reduce<float>(kForward, Reduction::kSum, data);
      },
      [](int rank, Collectives& c) {
        std::vector<float> data(rank == 1 ? 60000 : 50000);
        c.all_reduce<float>(kForward, Reduction::kSum, data);
      },
      [](int rank, Collectives& c) {
        std::vector<float> floats(4);
        std::vector<int32_t> integers(4);
        if (rank == 1) {
          c.all_reduce<int32_t>(kForward, Reduction::kSum, integers);
        } else {
          c.all_reduce<float>(kForward, Reduction::kSum, floats);
        }
      },
      [](int rank, Collectives& c) {
        std::vector<float> data(4);
        c.all_reduce<float>(kForward, rank == 1 ? Reduction::kMax : Reduction::kMin, data);
      },
      [](int rank, Collectives& c) {
        std::vector<float> data(6);
        if (rank == 1) {
          (void)c.reduce_scatter<float>(kForward, Reduction::kSum, std::span<const float>(data));
        } else {
          c.all_reduce<float>(kForward, Reduction::kSum, data);
        }
      },
      [](int rank, Collectives& c) {
        std::string data(7, 'x');
        c.broadcast(kForward, rank == 1 ? 2 : 0, std::as_writable_bytes(std::span(data)));
      },
      [](int rank, Collectives& c) {
        std::string data(rank == 1 ? 8 : 7, 'x');
        c.broadcast(kForward, 0, std::as_writable_bytes(std::span(data)));
      },
      [](int rank, Collectives& c) {
        if (rank == 1) {
          c.all_gather(kForward, {});
        } else {
          c.barrier(kForward);
        }
      },
  };
  for (const auto& deviate : deviations) {
    const auto errors = mismatch(
        [&](Communicator& comm, Collectives& collectives) { deviate(comm.rank(), collectives); });
    ASSERT_EQ(errors.size(), 3U);
    EXPECT_NE(errors[1].parts().rank, 1);
    EXPECT_TRUE(errors[1].sentence().find("this rank 1") != std::string::npos)
        << errors[1].sentence();
  }
}

TEST(LocalEngine, SizesAreNamedInAMismatch) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  Rank one(group, 1);
  post(*zero.channel, 2, {.name = "all_reduce", .size = 5});
  const auto error = error_of([&] { post(*one.channel, 2, {.name = "all_reduce", .size = 6}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->sentence(),
            "rank 0 brings 5 elements to \"all_reduce\" (exchange 0) while this rank 1 brings 6; "
            "sizes must be equal on all ranks");
  const auto other = error_of([&] { zero.comm->check(); });
  ASSERT_TRUE(other);
  EXPECT_EQ(other->sentence(),
            "rank 1 brings 6 elements to \"all_reduce\" (exchange 0) while this rank 0 brings 5; "
            "sizes must be equal on all ranks");
}

TEST(LocalEngine, ChannelsOpenedInDifferentOrderAreAMismatch) {
  const auto group = local::make_group(2, 2);
  const auto zero = local::join(group, 0);
  const auto one = local::join(group, 1);
  const auto input = zero->open_channel(Purpose::kInput);
  const auto gradient = one->open_channel(Purpose::kGradient);
  post(*input, 2);
  const auto error = error_of([&] { post(*gradient, 2); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_MISMATCH);
  EXPECT_EQ(error->parts().rank, 0);
}

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
