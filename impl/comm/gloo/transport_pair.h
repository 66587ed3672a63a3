// The connections of a rank to all others. To a peer whose memory this rank can read (peer_memory.h)
// there is one; to any other peer there are two, one for each direction.
//
// Over one connection long messages of both directions would take turns: before Gloo sends a message,
// the receiver notifies it over the same connection that memory is ready, and this notification waits
// behind the long message that goes the other way.
//
// Thread rule: that of transport_plugin.h.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "comm/gloo/gloo_transport.h"

namespace shardrec::comm::gloo_plugin {

class TransportPair {
 public:
  explicit TransportPair(const shardrec_transport_job& job);  // collective

  int rank() const noexcept { return first_.rank(); }
  int size() const noexcept { return first_.size(); }

  Request* send(int peer, uint64_t slot, const void* data, uint64_t bytes) {
    return transport_of(Direction::kSend, peer).send(peer, slot, data, bytes);
  }
  Request* receive(int peer, uint64_t slot, void* data, uint64_t bytes) {
    return transport_of(Direction::kReceive, peer).receive(peer, slot, data, bytes);
  }
  int32_t wait(Request& request, double seconds) {
    return transport_of(request).wait(request, seconds);
  }
  void forget(Request& request) noexcept { transport_of(request).forget(request); }
  void cancel() noexcept;

 private:
  TransportPair(const shardrec_transport_job& job, plugin::Clock::time_point deadline);
  // Of a message between this rank and a peer; any number that is no peer's: the first.
  Transport& transport_of(Direction direction, int peer) noexcept;
  Transport& transport_of(const Request& request) noexcept {
    return transport_of(request.direction, request.peer);
  }

  Transport first_;
  std::vector<bool> far_;            // by peer: has a second connection
  std::optional<Transport> second_;  // to these: for what goes from the higher rank to the lower
};

}  // namespace shardrec::comm::gloo_plugin
