// The two interfaces that engines between processes are built on. A Carrier moves messages. A
// StateBroadcast sends group states (group_state.h) to all other ranks, whatever they are doing. A
// plug-in is a Carrier (transport_plugin.h). The StateBroadcast is the plug-in's own (mpi) or the
// control connection of the rendezvous (gloo).
//
// Thread rule: as in transport_plugin.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "comm/communicator.h"

namespace shardrec::comm::remote {

enum class Outcome : uint8_t { kDone, kTimeout, kFailed, kCancelled };

struct Result {
  Outcome outcome = Outcome::kDone;
  int peer = -1;       // of kFailed, where it is known
  std::string text{};  // likewise
};

// A send or a receive under way. Destroying the request cancels it: its memory is not touched
// afterwards.
class Request {
 public:
  virtual ~Request() = default;
  // Waits up to `seconds`. Do not call it again after an outcome other than kTimeout.
  virtual Result wait(double seconds) = 0;
};

// Messages are named by (sender, receiver, tag of 31 bits), their length known to both ends. Throws
// core::Error (PEER_FAILED, OUT_OF_MEMORY) from send and receive.
class Carrier {
 public:
  virtual ~Carrier() = default;
  virtual std::unique_ptr<Request> send(int peer, uint32_t tag, ConstBytes data) = 0;
  virtual std::unique_ptr<Request> receive(int peer, uint32_t tag, std::span<std::byte> data) = 0;
  // Ends every wait, now and later, with kCancelled.
  virtual void cancel() noexcept = 0;
};

// Sends group states of up to 1024 bytes to every other rank, and receives theirs. The group states of
// one rank arrive in the order in which they were announced, and before the loss of that rank.
class StateBroadcast {
 public:
  virtual ~StateBroadcast() = default;
  // Does not wait for any rank. Works after Carrier::cancel() too.
  virtual void announce(ConstBytes group_state) noexcept = 0;

  // Called on the thread of the broadcast, one call at a time. The functions may call nothing of the
  // link except Carrier::cancel().
  struct Listener {
    // A peer has announced a group state.
    std::function<void(int from, ConstBytes group_state)> heard;
    // A peer is gone: its process ended, its host is silent, its connection broke. Once per peer.
    std::function<void(int peer, const std::string& how)> lost;
  };
  // Called once, before the first exchange. The listener is notified at once of what arrived before.
  // An empty Listener ends listening: after the call none of the listener's functions runs.
  virtual void listen(Listener listener) = 0;
};

// How many ranks there are and how they are placed on nodes and processes. Known after the
// rendezvous.
struct RankLayout {
  int rank = 0;
  int size = 1;
  int ranks_per_node = 1;
  int ranks_in_process = 1;
};

// A communicator of `layout.size` ranks over a link. Not collective by itself: the first call is.
std::shared_ptr<Communicator> make_communicator(const RankLayout& layout,
                                                std::shared_ptr<Carrier> carrier,
                                                std::shared_ptr<StateBroadcast> state_broadcast);

}  // namespace shardrec::comm::remote
