// What the engines between processes are built on: a Carrier moves messages, a GroupState state broadcast tells
// every rank what has happened to one of them. A plug-in is a Carrier (transport_plugin.h); the
// state broadcast is the plug-in's own (mpi) or the control connection of the rendezvous (gloo).
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

// A message under way. Destroying it gives it up: its memory is not touched afterwards.
class Request {
 public:
  virtual ~Request() = default;
  // Not called any more once it has returned another outcome than kTimeout.
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

// Tells every other rank something, in up to 1024 bytes, and hears what they tell. What one rank
// announces is heard in its order, and before that rank's loss.
class StateBroadcast {
 public:
  virtual ~StateBroadcast() = default;
  // Does not wait for anybody. Works after Carrier::cancel() too.
  virtual void announce(ConstBytes group_state) noexcept = 0;

  // Called from the state broadcast's thread, one call at a time. Its functions call nothing of the link but
  // Carrier::cancel().
  struct Listener {
    // A peer announced something.
    std::function<void(int from, ConstBytes group_state)> heard;
    // A peer is gone: its process ended, its host is silent, its connection broke. Once per peer.
    std::function<void(int peer, const std::string& how)> lost;
  };
  // Once, before the first exchange; what was heard before is told at once. An empty Listener ends
  // it: afterwards none of its functions runs.
  virtual void listen(Listener listener) = 0;
};

// Where the ranks live, from what each said of itself when they met.
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
