// How a communicator of the `local` engine dies: every rank is told, in time, by name, for good.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/log.h"
#include "rank.h"

namespace shardrec::comm {
namespace {

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
  EXPECT_LT(seconds_since(start), 5.0);  // far below the deadline, even on a loaded machine
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
            post(*zero.channel, 2, {.name = "create", .deadline_kind = DeadlineKind::kSetup}));
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
  const auto message = core::next_log(std::chrono::seconds(60));
  EXPECT_FALSE(core::next_log(milliseconds(100))) << "it has warned once";
  Rank two(group, 2);
  post(*two.channel, 3);
  waiter.join();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->level, SHARDREC_LOG_WARNING);
  EXPECT_EQ(message->rank, 0);
  EXPECT_EQ(message->text,
            "rank 0 has waited 0.02 s in \"forward\" (exchange 0) for rank 2 (has not joined yet)");
  EXPECT_FALSE(core::next_log(milliseconds(0)));
}

}  // namespace
}  // namespace shardrec::comm
