// How a communicator between processes dies: every rank is told, in time, by name, for good.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/log.h"
#include "rank.h"
#include "support/asleep.h"
#include "support/eventually.h"
#include "support/memory_link.h"

namespace shardrec::comm {
namespace {

using support::MemoryLink;

// A link whose sends wait for their receiver, and ranks on it.
struct World {
  explicit World(int size, support::MemoryLinkOptions options = {.rendezvous = true})
      : link(MemoryLink::make(size, options)) {
    for (int rank = 0; rank < size; ++rank) ranks.emplace_back(link->join(rank));
  }
  Rank& operator[](int rank) { return ranks[static_cast<size_t>(rank)]; }
  std::shared_ptr<MemoryLink> link;
  std::vector<Rank> ranks;
};

// What a rank's every call throws soon, though nobody waits for anything.
core::Error told(Communicator& comm) {
  std::optional<core::Error> error;
  EXPECT_TRUE(test::eventually([&] {
    error = error_of([&] { comm.check(); });
    return error.has_value();
  })) << "rank "
      << comm.rank() << " was told nothing";
  return error.value_or(core::Error(SHARDREC_OK, "nothing"));
}

void step(Rank& rank, int world) {
  const Ticket ticket = post(*rank.channel, world);
  receive(*rank.channel, world, ticket);
  rank.channel->release(ticket);
  rank.channel->reclaim(ticket);
}

// One exchange on all ranks.
void step_all(World& world) {
  std::vector<std::thread> threads;
  const int size = static_cast<int>(world.ranks.size());
  for (Rank& rank : world.ranks) threads.emplace_back([&] { step(rank, size); });
  for (auto& thread : threads) thread.join();
}

TEST(RemoteEngine, PeerWhoseProcessEndedEndsAWaitNamingRankAndOperation) {
  World world(3);
  const auto error = thrown_while_waiting([&] { step(world[0], 3); }, [&] { world.link->cut(2); });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error.parts().rank, 2);
  EXPECT_EQ(error.parts().operation, "forward");
  EXPECT_EQ(error.sentence(),
            "rank 2 is gone: its process ended; this ends \"forward\" (exchange 0) of this rank 0");
  EXPECT_EQ(told(*world[1].comm).sentence(), "rank 2 is gone: its process ended");
}

// Rank 2 stopped when it had said to rank 0, but not to rank 1, that it closes; rank 0 has left,
// and with its process those are gone who would notice.
TEST(RemoteEngine, TheLastBarrierIsOverWhenAnotherRankHasLeft) {
  World world(3);
  Operation last{.name = "close", .kind = 3};
  last.last = true;
  std::optional<core::Error> error;
  std::atomic<pid_t> waits{0};
  std::thread waiter([&] {
    waits = gettid();
    error = error_of([&] {
      Channel& channel = *world[1].channel;
      const Ticket ticket = post(channel, 3, last);
      receive(channel, 3, ticket);
      channel.release(ticket);
      channel.reclaim(ticket);
      world[1].comm->leave();
    });
  });
  EXPECT_TRUE(test::eventually([&] { return test::is_asleep(waits); }));
  const auto start = SteadyClock::now();
  world[0].comm->leave();
  waiter.join();
  EXPECT_LT(seconds_since(start), 5.0);
  EXPECT_FALSE(error) << error->sentence();
  world.link->cut(2);  // or the others would give it time to leave too
}

TEST(RemoteEngine, PeerLostWhileNobodyWaitsKillsTheCommunicator) {
  World world(3);
  step_all(world);
  world.link->tell_loss(1, "silent for 4 s");
  for (const int rank : {0, 2}) {
    const auto error = told(*world[rank].comm);
    EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
    EXPECT_EQ(error.sentence(), "rank 1 is gone: silent for 4 s");
    EXPECT_EQ(error_of([&] { post(*world[rank].channel, 3); })->parts().rank, 1);
  }
}

TEST(RemoteEngine, ABrokenConnectionIsReportedAsThePeersEndIfThatIsAnnounced) {
  World world(2);
  const auto error = thrown_while_waiting([&] { step(world[0], 2); },
                                          [&] {
                                            world.link->break_connections(1, "broken pipe");
                                            // Told late on purpose, as by another connection.
                                            std::this_thread::sleep_for(milliseconds(50));
                                            world.link->tell_loss(1, "its process ended");
                                          });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_SAYS(error, "rank 1 is gone: its process ended");
}

TEST(RemoteEngine, ABrokenConnectionThatIsNotAnnouncedIsAFailureOfItsOwn) {
  World world(2);
  const auto error = thrown_while_waiting([&] { step(world[0], 2); },
                                          [&] { world.link->break_connections(1, "broken pipe"); });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error.parts().rank, 1);
  EXPECT_EQ(error.sentence(),
            "the connection of this rank 0 with rank 1 failed in \"forward\" (exchange 0): broken "
            "pipe");
}

TEST(RemoteEngine, PeerDestroyedEndsAWaitInReceiveWithPeerFailed) {
  World world(3);
  post(*world[1].channel, 3);
  const auto error =
      thrown_while_waiting([&] { step(world[0], 3); }, [&] { world[2].comm.reset(); });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error.parts().rank, 2);
  EXPECT_EQ(error.parts().operation, "forward");
  EXPECT_EQ(error.parts().sequence, 0);
  EXPECT_SAYS(error,
              "rank 2 destroyed its communicator without closing it, and this rank 0 waited");
  const auto other = told(*world[1].comm);
  EXPECT_EQ(other.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(other.parts().rank, 2);
  EXPECT_SAYS(other, "rank 0 waited");
}

TEST(RemoteEngine, PeerDestroyedBeforeThePostEndsALaterWaitAtOnce) {
  World world(2);
  world[1].comm.reset();
  EXPECT_TRUE(test::eventually([&] { return world.link->unheard(0) == 0; }));
  world[0].comm->check();  // nobody has needed it yet
  const auto start = SteadyClock::now();
  const auto error = error_of([&] { step(world[0], 2); });
  EXPECT_LT(seconds_since(start), 5.0);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error->parts().rank, 1);
}

TEST(RemoteEngine, WhatAPeerPostedBeforeItsEndIsStillReceived) {
  for (const bool rendezvous : {false, true}) {
    const auto link = MemoryLink::make(2, {.rendezvous = rendezvous, .delay = 0.02});
    Rank zero(link->join(0));
    const auto large = std::make_shared<std::string>(100000, 'x');
    std::thread other([&] {
      Rank one(link->join(1));
      const ConstBytes bytes = bytes_of(*large);
      one.channel->post(kForward, std::vector<ConstBytes>{bytes, bytes}, large);
      one.comm->leave();
    });
    const Ticket ticket = post(*zero.channel, 2);
    std::vector<ConstBytes> received(2);
    zero.channel->receive(ticket, received);
    EXPECT_EQ(text_of(received[1]), *large);
    zero.channel->release(ticket);
    zero.channel->reclaim(ticket);
    zero.comm->check();
    other.join();
    EXPECT_EQ(large.use_count(), 1);
  }
}

TEST(RemoteEngine, DestroyedChannelOfALivingPeerEndsTheWaitForIt) {
  World world(2);
  const auto error =
      thrown_while_waiting([&] { step(world[0], 2); }, [&] { world[1].channel.reset(); });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error.parts().rank, 1);
  EXPECT_SAYS(error, "rank 1 destroyed its side of \"forward\"");
}

TEST(RemoteEngine, WhatADestroyedChannelHasNotReadCountsAsRead) {
  World world(2);
  const auto large = std::make_shared<std::string>(100000, 'x');
  const ConstBytes bytes = bytes_of(*large);
  const Ticket ticket =
      world[0].channel->post(kForward, std::vector<ConstBytes>{bytes, bytes}, large);
  std::thread closer([&, reclaims = gettid()] {
    EXPECT_TRUE(test::eventually([&] { return test::is_asleep(reclaims); }));
    world[1].channel.reset();
  });
  world[0].channel->reclaim(ticket);
  closer.join();
  world[0].comm->check();
  // To take its memory back could cost the connection: it stays with the link.
  EXPECT_EQ(large.use_count(), 2);
  world[0].channel.reset();
  world[0].comm.reset();
  EXPECT_EQ(large.use_count(), 1);
}

TEST(RemoteEngine, OrderlyLeaveAndThenTheEndHarmNobodyUntilSomebodyWaitsForTheRank) {
  World world(2);
  step_all(world);
  world[1].comm->leave();
  const auto closed = error_of([&] { post(*world[1].channel, 2); });
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->status(), SHARDREC_CLOSED);
  world[1].comm.reset();
  world[1].channel.reset();
  world.link->cut(1);
  EXPECT_TRUE(test::eventually([&] { return world.link->unheard(0) == 0; }));
  world[0].comm->check();
  const auto error = error_of([&] { step(world[0], 2); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error->parts().rank, 1);
  EXPECT_SAYS(*error, "rank 1 has closed");
}

TEST(RemoteEngine, DisconnectDuringAnOwnWaitEndsItWithClosedAndThePeersWithPeerFailed) {
  World world(2);
  const auto error =
      thrown_while_waiting([&] { step(world[1], 2); }, [&] { world[1].comm->disconnect(); });
  EXPECT_EQ(error.status(), SHARDREC_CLOSED);
  const auto peer = told(*world[0].comm);
  EXPECT_EQ(peer.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(peer.parts().rank, 1);
  EXPECT_SAYS(peer, "rank 1 gave up \"forward\"");
}

TEST(RemoteEngine, FailNamesTheRankAndTheOperationItLeaves) {
  World world(2);
  const auto error = thrown_while_waiting([&] { step(world[0], 2); },
                                          [&] { world[1].comm->fail("forward of lookup 3"); });
  EXPECT_EQ(error.status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error.parts().rank, 1);
  EXPECT_SAYS(error, "rank 1 gave up \"forward of lookup 3\"");
  EXPECT_SAYS(error, "\"forward\" (exchange 0) of this rank 0");
}

TEST(RemoteEngine, AbortFromAnotherThreadEndsEveryWaitWithRankAndReason) {
  World world(3);
  std::optional<core::Error> second;
  std::thread other([&] { second = error_of([&] { step(world[1], 3); }); });
  const auto error = thrown_while_waiting([&] { step(world[0], 3); },
                                          [&] { world[0].comm->abort("the job was cancelled"); });
  other.join();
  EXPECT_EQ(error.status(), SHARDREC_ABORTED);
  EXPECT_SAYS(error, "this rank 0 aborted the communicator: the job was cancelled");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->status(), SHARDREC_ABORTED);
  EXPECT_EQ(second->parts().rank, 0);
  EXPECT_SAYS(*second, "rank 0 aborted the communicator: the job was cancelled");
  EXPECT_EQ(told(*world[2].comm).status(), SHARDREC_ABORTED);
}

TEST(RemoteEngine, TheFirstFailureIsKeptByEveryCall) {
  World world(2);
  Rank& zero = world[0];
  const Ticket open = post(*zero.channel, 2);
  world[1].comm->abort("first");
  told(*zero.comm);
  zero.comm->abort("second");
  world[1].comm->fail("third");
  const std::function<void()> calls[] = {
      [&] { zero.comm->check(); },
      [&] { world[1].comm->check(); },
      [&] { post(*zero.channel, 2); },
      [&] { receive(*zero.channel, 2, open); },
      [&] { zero.channel->reclaim(open); },
      [&] { post(*world[1].channel, 2); },
      [&] { Collectives(world[1].comm->open_channel(Purpose::kDense), 1, 2).barrier(kForward); },
      [&] { zero.comm->split(0, 0); },
  };
  for (const auto& call : calls) {
    const auto error = error_of(call);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_ABORTED);
    EXPECT_EQ(error->parts().rank, 1);
    EXPECT_SAYS(*error, "rank 1 aborted the communicator: first");
  }
  zero.channel->release(open);
}

TEST(RemoteEngine, LateRankEndsTheWaitWithTimeoutInTimeAndByName) {
  double fastest = 60;
  for (int attempt = 0; attempt < 5 && fastest > 0.1; ++attempt) {
    World world(4);
    step_all(world);
    post(*world[1].channel, 4);
    world[0].comm->set_deadlines({.step = 0.05, .setup = 60, .warn = 30});
    const Ticket ticket = post(*world[0].channel, 4);
    const auto start = SteadyClock::now();
    const auto error = error_of([&] { receive(*world[0].channel, 4, ticket); });
    const double seconds = seconds_since(start);
    EXPECT_GE(seconds, 0.05);
    fastest = std::min(fastest, seconds);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
    EXPECT_EQ(error->parts().rank, 2);  // rank 3 is late too
    EXPECT_EQ(error->parts().operation, "forward");
    EXPECT_EQ(
        error->sentence(),
        "rank 2 did not come to \"forward\" (exchange 1) within 0.05 s of this rank 0 waiting "
        "for it; it was last seen in \"forward\"");
    const auto late = told(*world[2].comm);
    EXPECT_EQ(late.status(), SHARDREC_TIMEOUT);
    EXPECT_SAYS(late, "this rank 2 did not come to \"forward\"");
  }
  EXPECT_LE(fastest, 0.1);
}

TEST(RemoteEngine, SlowReaderEndsAReclaimWithTimeout) {
  World world(2);
  const auto large = std::make_shared<std::string>(100000, 'x');
  const ConstBytes bytes = bytes_of(*large);
  const Ticket ticket =
      world[0].channel->post(kForward, std::vector<ConstBytes>{bytes, bytes}, large);
  world[0].comm->set_deadlines({.step = 0.02, .setup = 60, .warn = 30});
  const auto error = error_of([&] { world[0].channel->reclaim(ticket); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
  EXPECT_EQ(error->parts().rank, 1);
  EXPECT_SAYS(*error, "rank 1 did not finish reading \"forward\"");
}

TEST(RemoteEngine, AMessageThatStaysAwayIsATimeoutOfARankThatCame) {
  World world(2);
  world.link->lose([](int from, int, uint32_t tag) { return from == 1 && tag % 2 == 1; });
  const auto large = std::make_shared<std::string>(100000, 'x');
  const ConstBytes bytes = bytes_of(*large);
  world[1].channel->post(kForward, std::vector<ConstBytes>{bytes, bytes}, large);
  world[0].comm->set_deadlines({.step = 0.05, .setup = 60, .warn = 30});
  const auto error = error_of([&] { step(world[0], 2); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
  EXPECT_SAYS(*error, "it came, but not all of its 100000 bytes have arrived");
}

TEST(RemoteEngine, SetupOperationsWaitUnderTheSetupDeadline) {
  World world(2);
  world[0].comm->set_deadlines({.step = 60, .setup = 0.02, .warn = 30});
  const auto error = error_of([&] {
    receive(*world[0].channel, 2,
            post(*world[0].channel, 2, {.name = "create", .deadline_kind = DeadlineKind::kSetup}));
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_TIMEOUT);
  EXPECT_SAYS(*error, "it has sent nothing yet");
}

TEST(RemoteEngine, ALongWaitWarnsOncePerWaitNamingTheLateRanks) {
  while (core::next_log(milliseconds(0))) {
  }
  World world(3);
  world[0].comm->set_deadlines({.step = 60, .setup = 60, .warn = 0.02});
  post(*world[1].channel, 3);
  std::thread waiter([&] { receive(*world[0].channel, 3, post(*world[0].channel, 3)); });
  const auto message = core::next_log(std::chrono::seconds(60));
  EXPECT_FALSE(core::next_log(milliseconds(100))) << "it has warned once";
  post(*world[2].channel, 3);
  waiter.join();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->level, SHARDREC_LOG_WARNING);
  EXPECT_EQ(message->rank, 0);
  EXPECT_EQ(message->text,
            "rank 0 has waited 0.02 s in \"forward\" (exchange 0) for rank 2 (has sent nothing "
            "yet)");
  EXPECT_FALSE(core::next_log(milliseconds(0)));
}

TEST(RemoteEngine, DestroyingWithRequestsPendingTakesAMomentAndLeavesNone) {
  const auto link = MemoryLink::make(3, {.rendezvous = true});
  const auto large = std::make_shared<std::string>(100000, 'x');
  const auto start = SteadyClock::now();
  {
    Rank zero(link->join(0));
    Rank one(link->join(1));  // rank 2 never comes
    const ConstBytes bytes = bytes_of(*large);
    for (int i = 0; i < 3; ++i) {
      zero.channel->post(kForward, std::vector<ConstBytes>(3, bytes), large);
      one.channel->post(kForward, std::vector<ConstBytes>(3, bytes), large);
    }
  }
  EXPECT_LT(seconds_since(start), 4.0);
  EXPECT_EQ(link->requests(), 0);
  EXPECT_EQ(large.use_count(), 1);
}

TEST(RemoteEngine, WhatWasPostedAndCouldNotBeSentBeforeTheEndIsAFailureForWhoWaits) {
  // The message takes longer than the sender's end waits for it.
  const auto link = MemoryLink::make(2, {.rendezvous = true});
  Rank zero(link->join(0));
  {
    Rank one(link->join(1));
    const auto large = std::make_shared<std::string>(100000, 'x');
    one.channel->post(kForward, std::vector<ConstBytes>(2, bytes_of(*large)), large);
  }
  zero.comm->check();
  const auto start = SteadyClock::now();
  const auto error = error_of([&] { step(zero, 2); });
  EXPECT_LT(seconds_since(start), 5.0);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error->parts().rank, 1);
  EXPECT_SAYS(*error, "rank 1 is gone: it ended before all that it had posted was sent");
}

}  // namespace
}  // namespace shardrec::comm
