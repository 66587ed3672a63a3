// The connections that have not yet proved to know the secret. They are bounded in number, in bytes
// (only an answer's worth is ever read of one) and in time; nothing of what they send is looked at
// before its HMAC is. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "comm/rendezvous/net/poller.h"
#include "comm/rendezvous/net/socket.h"
#include "comm/rendezvous/protocol/handshake.h"

namespace shardrec::comm::rendezvous {

class Listener {
 public:
  struct Authenticated {
    Socket socket;
    int rank = 0;
    Verdict verdict{};  // to be sent first
  };

  Listener(Socket socket, const Key& key, std::string job, milliseconds authentication_time)
      : socket_(std::move(socket)),
        key_(key),
        job_(std::move(job)),
        authentication_time_(authentication_time) {}

  const Socket& socket() const noexcept { return socket_; }
  // Accepts up to 64 connections; each gets the next name and is added to the poller. False: the
  // machine has no room for more now, ask later.
  bool accept_connections(Poller& poller, uint64_t& next_name, Clock::time_point now);
  bool knows(uint64_t name) const { return unauthenticated_.contains(name); }
  // Reads what a connection sends. Returns a peer once it has proved to know the secret.
  std::optional<Authenticated> receive_answer(uint64_t name);
  // Closes the connections that have taken too long.
  void clear(Clock::time_point now);
  // Closes all, and listens no more.
  void end() noexcept;

  size_t count() const noexcept { return unauthenticated_.size(); }
  uint32_t turned_away() const noexcept { return turned_away_; }

 private:
  struct Unauthenticated {
    Socket socket;
    Nonce nonce{};
    Answer answer{};
    size_t got = 0;
    Clock::time_point since;
  };

  Socket socket_;
  Key key_;
  std::string job_;
  milliseconds authentication_time_;
  std::map<uint64_t, Unauthenticated> unauthenticated_;  // the oldest first
  uint32_t turned_away_ = 0;
};

}  // namespace shardrec::comm::rendezvous
