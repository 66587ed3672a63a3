#include "comm/gloo/silence.h"

#include <gloo/transport/tcp/pair.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <mutex>

namespace shardrec::comm::gloo_plugin {
namespace {

constexpr double kLeastSeconds = 1;  // what is lost on the way is to be sent again a few times
constexpr double kMostSeconds = 3600;

// Gloo keeps its socket to itself and to classes made from its own.
struct Opened : gloo::transport::tcp::Pair {
  static int socket_of(gloo::transport::tcp::Pair& pair) {
    const std::lock_guard lock(pair.*(&Opened::m_));
    return pair.*(&Opened::fd_);
  }
};

void set(int socket, int level, int option, int value) noexcept {
  setsockopt(socket, level, option, &value, sizeof value);
}

}  // namespace

// The kernel of a host answers for a process that is busy, or stopped.
void end_when_silent(gloo::transport::Pair& pair, double seconds) noexcept {
  auto* const connected = dynamic_cast<gloo::transport::tcp::Pair*>(&pair);
  const int socket = connected == nullptr ? -1 : Opened::socket_of(*connected);
  if (socket < 0 || seconds <= 0) return;
  constexpr int kAsked = 3;
  const double limit = std::clamp(seconds, kLeastSeconds, kMostSeconds);
  const int every = std::max(1, static_cast<int>(limit / kAsked));
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, every);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, every);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, kAsked);
  set(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(limit * 1000));
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
}

}  // namespace shardrec::comm::gloo_plugin
