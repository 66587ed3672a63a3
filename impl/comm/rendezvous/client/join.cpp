#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/rendezvous/client/connect.h"
#include "comm/rendezvous/client/rendezvous.h"
#include "comm/rendezvous/protocol/layout.h"

namespace shardrec::comm::rendezvous {
namespace {

constexpr milliseconds kPause{100};

Meeting join_once(const Token& token, const Join& who, Clock::time_point deadline,
                  const Belief& belief) {
  auto client = start_client(connect(token, who.rank, deadline, belief), who);
  const Formed formed = client->wait_until_formed(deadline);
  return {.layout = {.rank = who.rank,
                     .size = who.size,
                     .ranks_per_node = formed.ranks_per_node,
                     .ranks_in_process = formed.ranks_in_process},
          .client = std::move(client)};
}

}  // namespace

Meeting join(const Token& token, int rank, int size, const JoinOptions& options) {
  if (size < 1 || size > kMostRanks) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the group has ", size, " ranks; 1 to ", kMostRanks, " is accepted"),
               {.value = size});
  }
  if (rank < 0 || rank >= size) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the rank is ", rank, "; 0 to ", size - 1, " is accepted"),
               {.value = rank});
  }
  const Clock::time_point now = Clock::now();
  const Clock::time_point deadline = after(now, options.seconds);
  const Clock::time_point give_up = std::min(deadline, after(now, options.seconds_for_next_group));
  const Join who{.rank = rank,
                 .size = size,
                 .host = this_host(),
                 .process = this_process(),
                 .ranks_on_host = options.ranks_on_host};
  for (;;) {
    try {
      return join_once(token, who, deadline, options.belief);
    } catch (const GroupComplete&) {
      if (Clock::now() + kPause >= give_up) throw;
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace shardrec::comm::rendezvous
