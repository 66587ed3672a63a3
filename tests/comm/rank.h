// One rank in a test's hands, for tests that play all ranks or all but one from a single thread.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

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

// A rank in this thread's hands: its communicator and one channel.
struct Rank {
  Rank(const std::shared_ptr<local::Group>& group, int rank)
      : comm(local::join(group, rank)), channel(comm->open_channel(Purpose::kOutput)) {
    comm->set_deadlines({.step = 60, .setup = 60, .warn = 30});
  }
  std::shared_ptr<Communicator> comm;
  std::shared_ptr<Channel> channel;
};

}  // namespace shardrec::comm
