// One rank in a test's hands, for tests that play all ranks or all but one from a single thread.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "support/asleep.h"
#include "support/eventually.h"
#include "world.h"

namespace shardrec::comm {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

inline constexpr Operation kForward{.name = "forward", .kind = 1};
inline constexpr Operation kBackward{.name = "backward", .kind = 2};

#define EXPECT_SAYS(error, text) \
  EXPECT_NE((error).sentence().find(text), std::string::npos) << (error).sentence()

// One exchange without content.
inline Ticket post(Channel& channel, int world, const Operation& operation = kForward) {
  const std::vector<ConstBytes> send(static_cast<size_t>(world));
  return channel.post(operation, send, nullptr);
}
inline void receive(Channel& channel, int world, Ticket ticket) {
  std::vector<ConstBytes> received(static_cast<size_t>(world));
  channel.receive(ticket, received);
}

// Starts `call` in a thread, runs `event` when that thread sleeps, returns what call threw.
inline core::Error thrown_while_waiting(const std::function<void()>& call,
                                        const std::function<void()>& event) {
  std::optional<core::Error> error;
  std::atomic<pid_t> thread{0};
  std::thread waiter([&] {
    thread = gettid();
    error = error_of(call);
  });
  EXPECT_TRUE(test::eventually([&] { return test::is_asleep(thread); }));
  event();
  const auto start = SteadyClock::now();
  waiter.join();
  EXPECT_LT(seconds_since(start), 5.0);  // far below the deadline, even on a loaded machine
  EXPECT_TRUE(error);
  return error ? *error : core::Error(SHARDREC_OK, "nothing was thrown");
}

// A rank in this thread's hands: its communicator and one channel.
struct Rank {
  Rank(const std::shared_ptr<local::Group>& group, int rank) : Rank(local::join(group, rank)) {}
  explicit Rank(std::shared_ptr<Communicator> joined)
      : comm(std::move(joined)), channel(comm->open_channel(Purpose::kOutput)) {
    comm->set_deadlines({.step = 60, .setup = 60, .warn = 30});
  }
  std::shared_ptr<Communicator> comm;
  std::shared_ptr<Channel> channel;
};

}  // namespace shardrec::comm
