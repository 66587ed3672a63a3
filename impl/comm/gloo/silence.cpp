#include "comm/gloo/silence.h"

#include <gloo/transport/tcp/pair.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "comm/keepalive.h"

namespace shardrec::comm::gloo_plugin {
namespace {

constexpr double kLeastSeconds = 1;  // what is lost on the way is to be sent again a few times

// Gloo keeps its socket to itself and to classes made from its own.
struct Opened : gloo::transport::tcp::Pair {
  static int socket_of(gloo::transport::tcp::Pair& pair) {
    const std::lock_guard lock(pair.*(&Opened::m_));
    return pair.*(&Opened::fd_);
  }
};

}  // namespace

void end_when_silent(gloo::transport::Pair& pair, double seconds) noexcept {
  auto* const connected = dynamic_cast<gloo::transport::tcp::Pair*>(&pair);
  const int socket = connected == nullptr ? -1 : Opened::socket_of(*connected);
  if (socket < 0 || seconds <= 0) return;
  const std::chrono::duration<double> limit(std::max(seconds, kLeastSeconds));
  comm::end_when_silent(socket, std::chrono::duration_cast<std::chrono::milliseconds>(limit));
}

}  // namespace shardrec::comm::gloo_plugin
