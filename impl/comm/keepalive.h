// How a TCP connection notices that the other end's host is gone. Without this it notices when it
// stops to retransmit, after a quarter of an hour, and never where nothing is on its way.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace shardrec::comm {

// The connection ends when nothing has come for `silence`, at least 1 ms. The other host's kernel
// answers for a process that is busy, or stopped. Best effort.
inline void end_when_silent(int socket, std::chrono::milliseconds silence) noexcept {
  constexpr int kAsked = 3;
  const auto limit = static_cast<int>(std::clamp<int64_t>(silence.count(), 1, 1 << 30));
  const int every = std::max(1, limit / 1000 / kAsked);
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, every);
  set(IPPROTO_TCP, TCP_KEEPINTVL, every);
  set(IPPROTO_TCP, TCP_KEEPCNT, kAsked);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, limit);
}

}  // namespace shardrec::comm
