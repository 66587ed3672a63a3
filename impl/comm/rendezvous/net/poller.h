// Waits for many sockets at once. Sockets are named by numbers of the caller, never used twice, so
// that an event of a socket that is gone names nobody. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/rendezvous/net/socket.h"
#include "comm/rendezvous/protocol/limits.h"

namespace shardrec::comm::rendezvous {

struct Interest {
  bool read = true;
  bool write = false;
  bool operator==(const Interest&) const = default;
};

class Poller {
 public:
  Poller();

  // A socket that is closed later is forgotten by itself.
  void add(int descriptor, uint64_t name);
  void change(int descriptor, uint64_t name, Interest interest) noexcept;

  struct Event {
    uint64_t name;
    bool readable;  // or ended
    bool writable;
  };
  // Up to 128 events, valid until the next call; none after the timeout.
  std::span<const Event> wait(milliseconds timeout);

 private:
  Socket epoll_;
  std::vector<Event> events_;
};

}  // namespace shardrec::comm::rendezvous
