// What ranks tell each other through the rendezvous, and the ends of clients and servers.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "comm/rendezvous/client/client.h"
#include "comm/rendezvous/protocol/layout.h"
#include "rendezvous.h"
#include "support/asleep.h"
#include "support/eventually.h"

namespace shardrec::comm::rendezvous {
namespace {

ConstBytes bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// When this returns, `client` has been told, and has told its listener, all that the server had
// heard, and all ends of connections that it could have seen, when it was called. What arrives goes
// out in its order: the first round passes what the server hears together with it, the second what
// it then says, the third the turn of the client's thread in which that is told.
void settle(Client& client) {
  for (int round = 0; round < 3; ++round) {
    client.set("settle", bytes(std::to_string(round)), in(60));  // returns with the answer to it
  }
}

TEST(RendezvousStateBroadcast, GroupStatesReachEveryOtherRankInOneOrder) {
  constexpr int kRanks = 4;
  constexpr int kEach = 100;
  Server server({});
  auto meetings = meet(server.token(), kRanks);
  std::array<Ear, kRanks> ears;
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      meetings[rank].client->listen(ears[rank].listener());
      for (int i = 0; i < kEach; ++i) {
        meetings[rank].client->announce(bytes(std::to_string(i)));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<std::vector<std::pair<int, std::string>>> heard;
  for (Ear& ear : ears) heard.push_back(ear.group_states((kRanks - 1) * kEach));
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto& mine = heard[static_cast<size_t>(rank)];
    ASSERT_EQ(mine.size(), static_cast<size_t>((kRanks - 1) * kEach));
    std::array<int, kRanks> next{};
    for (const auto& [from, text] : mine) {
      ASSERT_NE(from, rank) << "nobody hears its own group states";
      ASSERT_EQ(text, std::to_string(next[static_cast<size_t>(from)]++));
    }
  }
  // The server's order: any two ranks hear what both hear in the same order.
  const auto without = [](std::vector<std::pair<int, std::string>> all, int a, int b) {
    std::erase_if(all, [=](const auto& one) { return one.first == a || one.first == b; });
    return all;
  };
  for (int a = 0; a < kRanks; ++a) {
    for (int b = a + 1; b < kRanks; ++b) {
      EXPECT_EQ(without(heard[static_cast<size_t>(a)], a, b),
                without(heard[static_cast<size_t>(b)], a, b));
    }
  }
}

TEST(RendezvousStateBroadcast, WhatCameBeforeTheListenerIsTold) {
  Server server({});
  auto meetings = meet(server.token(), 2);
  const std::string longest(kMostGroupStateBytes, 'x');
  meetings[0].client->announce(bytes(longest));
  meetings[0].client->announce({});
  settle(*meetings[0].client);  // the server has heard it
  settle(*meetings[1].client);
  Ear ear;
  meetings[1].client->listen(ear.listener());
  const auto heard = ear.group_states(2);
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard[0].second, longest);
  EXPECT_EQ(heard[1].second, "");
  // After the end of listening, nothing is told.
  meetings[1].client->listen({});
  meetings[0].client->announce(bytes("unheard"));
  settle(*meetings[0].client);
  settle(*meetings[1].client);
  EXPECT_EQ(ear.group_states(2, 0).size(), 2U);
}

TEST(RendezvousStateBroadcast, GoodbyeIsNoLossAndWhatWasAnnouncedBeforeItArrives) {
  Server server({});
  auto meetings = meet(server.token(), 3);
  std::array<Ear, 3> ears;
  for (size_t rank = 0; rank < 3; ++rank) meetings[rank].client->listen(ears[rank].listener());
  for (int i = 0; i < 50; ++i) meetings[1].client->announce(bytes(std::to_string(i)));
  meetings[1] = {};
  EXPECT_EQ(ears[0].group_states(50).size(), 50U);
  EXPECT_EQ(ears[2].group_states(50).size(), 50U);
  // It has closed its connection too.
  settle(*meetings[0].client);
  settle(*meetings[2].client);
  EXPECT_TRUE(ears[0].losses(1, 0).empty());
  EXPECT_TRUE(ears[2].losses(1, 0).empty());
  // Rank 0 leaves: that is in order too.
  meetings[0] = {};
  settle(*meetings[2].client);
  EXPECT_TRUE(ears[2].losses(1, 0).empty());
}

TEST(RendezvousStateBroadcast, RankZerosOrderlyEndWithItsServerIsNoLoss) {
  auto server = std::make_unique<Server>(ServerOptions{});
  Client loop(connect(server->token(), 1, in(60), {.has_started = true}),
              {.rank = 1, .size = 2, .host = this_host(), .process = this_process()});
  std::thread thread([&] { loop.run(); });
  Outcome zero = try_join(server->token(), 0, 2, {.seconds = 60});
  ASSERT_FALSE(zero.error) << zero.error->sentence();
  Ear ear;
  loop.listen(ear.listener());
  zero.meeting.reset();
  server.reset();
  EXPECT_TRUE(error_of([&] { loop.set("k", {}, in(60)); })) << "the connection has ended";
  loop.close();
  thread.join();  // it has told all that it had to tell
  EXPECT_TRUE(ear.losses(1, 0).empty());
}

TEST(RendezvousStateBroadcast, AServerThatEndsBeforeItsRanksIsTheLossOfRankZero) {
  auto server = std::make_unique<Server>(ServerOptions{});
  auto meetings = meet(server->token(), 3);
  std::array<Ear, 3> ears;
  for (size_t rank = 0; rank < 3; ++rank) meetings[rank].client->listen(ears[rank].listener());
  const auto start = Clock::now();
  server.reset();
  EXPECT_LT(seconds_since(start), 1.0) << "destroying is bounded";
  for (Ear& ear : ears) {
    const auto losses = ear.losses(1);
    ASSERT_EQ(losses.size(), 1U);
    EXPECT_EQ(losses[0].rank, 0);
    EXPECT_NE(losses[0].how.find("ends with rank 0's process"), std::string::npos) << losses[0].how;
  }
}

TEST(RendezvousStateBroadcast, AListenerMayEndListeningAndDestroyTheClientFromWithin) {
  Server server({});
  auto meetings = meet(server.token(), 2);
  std::mutex mutex;
  std::condition_variable changed;
  bool gone = false;
  std::shared_ptr<Client> client = std::move(meetings[1].client);
  Client* raw = client.get();
  auto owner = std::make_shared<std::shared_ptr<Client>>(std::move(client));
  raw->listen({.heard =
                   [&, owner](int, ConstBytes) {
                     owner->reset();
                     const std::lock_guard lock(mutex);
                     gone = true;
                     changed.notify_all();
                   },
               .lost = [](int, const std::string&) {}});
  meetings[0].client->announce(bytes("go"));
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_until(lock, in(10), [&] { return gone; }));
}

TEST(RendezvousStore, ValuesAreSharedAndWaitedFor) {
  Server server({});
  auto meetings = meet(server.token(), 2);
  std::string large(kMostValueBytes, '\0');
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 31);
  std::atomic<pid_t> waiter{0};
  std::thread waiting([&] {
    waiter = gettid();
    EXPECT_EQ(text_of(meetings[1].client->get("later", in(60))), large);
  });
  EXPECT_TRUE(test::eventually([&] { return test::is_asleep(waiter); }));
  meetings[0].client->set("later", bytes(large), in(20));
  waiting.join();
  meetings[1].client->set("k", bytes("1"), in(20));
  meetings[0].client->set("k", {}, in(20));
  EXPECT_EQ(text_of(meetings[1].client->get("k", in(20))), "");
  EXPECT_EQ(text_of(meetings[0].client->get("later", in(20))), large);
}

TEST(RendezvousStore, WhatIsNotAcceptedIsSaid) {
  Server server({});
  auto meetings = meet(server.token(), 1);
  Client& client = *meetings[0].client;
  const auto status = [](const std::function<void()>& call) { return error_of(call)->status(); };
  const std::string too_large(kMostValueBytes + 1, 'x');
  EXPECT_EQ(status([&] { client.set("k", bytes(too_large), in(5)); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status([&] { client.set(std::string(256, 'k'), {}, in(5)); }),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status([&] { client.get("a\nb", in(5)); }), SHARDREC_INVALID_ARGUMENT);
  const auto start = Clock::now();
  EXPECT_EQ(status([&] { client.get("never", in(0.05)); }), SHARDREC_TIMEOUT);
  EXPECT_LT(seconds_since(start), 5);
  // Full: what is there stays, and what it replaces makes room.
  const std::string value(kMostValueBytes, 'v');
  std::optional<core::Error> error;
  int stored = 0;
  for (; stored < 2000 && !error; ++stored) {
    error = error_of([&] { client.set(std::to_string(stored), bytes(value), in(20)); });
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_OUT_OF_MEMORY);
  EXPECT_LE(static_cast<size_t>(stored) * kMostValueBytes, kMostStoreBytes + kMostValueBytes);
  client.set("0", bytes("small"), in(20));
  client.set("more", bytes("small"), in(20));
  EXPECT_EQ(text_of(client.get("0", in(20))), "small");
  EXPECT_EQ(text_of(client.get("1", in(20))), value);
}

TEST(RendezvousStore, CloseAndTheServersEndEndEveryWait) {
  auto server = std::make_unique<Server>(ServerOptions{});
  auto meetings = meet(server->token(), 2);
  std::optional<core::Error> closed;
  std::optional<core::Error> ended;
  std::array<std::atomic<pid_t>, 2> waiters{};
  std::thread first([&] {
    waiters[0] = gettid();
    closed = error_of([&] { meetings[0].client->get("never", in(60)); });
  });
  std::thread second([&] {
    waiters[1] = gettid();
    ended = error_of([&] { meetings[1].client->get("never", in(60)); });
  });
  for (const std::atomic<pid_t>& waiter : waiters) {
    EXPECT_TRUE(test::eventually([&] { return test::is_asleep(waiter); }));
  }
  const auto start = Clock::now();
  meetings[0].client->close();
  first.join();
  server.reset();
  second.join();
  EXPECT_LT(seconds_since(start), 2);
  ASSERT_TRUE(closed && ended);
  EXPECT_EQ(closed->status(), SHARDREC_CLOSED);
  EXPECT_EQ(ended->status(), SHARDREC_PEER_FAILED) << ended->sentence();
  EXPECT_EQ(ended->parts().rank, 0);
}

TEST(RendezvousStore, WhoWaitsForAValueIsToldThatARankIsGone) {
  Server server({});
  auto meetings = meet(server.token(), 3);
  std::optional<core::Error> error;
  std::atomic<pid_t> waiter{0};
  std::thread waiting([&] {
    waiter = gettid();
    error = error_of([&] { meetings[1].client->get("of rank 2", in(60)); });
  });
  EXPECT_TRUE(test::eventually([&] { return test::is_asleep(waiter); }));
  const auto start = Clock::now();
  meetings[2] = {};
  waiting.join();
  EXPECT_LT(seconds_since(start), 2);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED);
  EXPECT_EQ(error->parts().rank, 2);
}

TEST(RendezvousStore, ARankMayNotWaitForKeysWithoutEnd) {
  Server server({});
  auto meetings = meet(server.token(), 1);
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (size_t i = 0; i < kMostWaitingGets + 5; ++i) {
    threads.emplace_back([&, i] {
      const auto error = error_of([&] { meetings[0].client->get(std::to_string(i), in(60)); });
      if (error->status() == SHARDREC_OUT_OF_MEMORY) ++refused;
    });
  }
  EXPECT_TRUE(test::eventually([&] { return refused.load() >= 5; }));
  EXPECT_EQ(refused.load(), 5);
  meetings[0].client->close();
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace shardrec::comm::rendezvous
