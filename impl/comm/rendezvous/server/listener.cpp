#include "comm/rendezvous/server/listener.h"

#include <bit>
#include <cerrno>

#include "core/error.h"
#include "core/log.h"

namespace shardrec::comm::rendezvous {
namespace {

constexpr int kMostAtOnce = 64;

}  // namespace

bool Listener::accept_connections(Poller& poller, uint64_t& next_name, Clock::time_point now) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    Socket socket(::accept4(socket_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        if (!unauthenticated_.empty()) unauthenticated_.erase(unauthenticated_.begin());
        return false;
      }
      return true;  // nobody waits, or who waited has gone
    }
    if (unauthenticated_.size() >= kMostUnauthenticated)
      unauthenticated_.erase(unauthenticated_.begin());
    Unauthenticated connection{.socket = std::move(socket), .since = now};
    connection.socket.watch(authentication_time_);
    core::fill_random(connection.nonce);
    const Challenge challenge = make_challenge(job_, connection.nonce);
    const Io io = connection.socket.write(challenge);
    if (io.outcome != Io::Outcome::kDone || io.bytes != challenge.size()) continue;
    const uint64_t name = next_name++;
    poller.add(connection.socket.descriptor(), name);
    unauthenticated_.emplace(name, std::move(connection));
  }
  return true;
}

std::optional<Listener::Authenticated> Listener::receive_answer(uint64_t name) {
  const auto found = unauthenticated_.find(name);
  Unauthenticated& connection = found->second;
  const Io io = connection.socket.read(std::span(connection.answer).subspan(connection.got));
  if (io.outcome == Io::Outcome::kLater) return std::nullopt;
  if (io.outcome == Io::Outcome::kEnded) {
    unauthenticated_.erase(found);
    return std::nullopt;
  }
  connection.got += io.bytes;
  if (connection.got < connection.answer.size()) return std::nullopt;
  Unauthenticated heard = std::move(connection);
  unauthenticated_.erase(found);
  const std::optional<int> rank = check_answer(key_, heard.nonce, heard.answer);
  if (!rank) {
    static_cast<void>(
        heard.socket.write(make_verdict(key_, heard.nonce, heard.answer, Code::kWrongSecret)));
    heard.socket.finish();
    if (std::has_single_bit(++turned_away_)) {
      core::log(SHARDREC_LOG_WARNING, 0,
                core::sentence("the rendezvous has refused ", turned_away_,
                               " connections that did not know the secret"));
    }
    return std::nullopt;
  }
  return Authenticated{.socket = std::move(heard.socket),
                       .rank = *rank,
                       .verdict = make_verdict(key_, heard.nonce, heard.answer, Code::kWelcome)};
}

void Listener::end() noexcept {
  unauthenticated_.clear();
  socket_ = Socket();
}

void Listener::clear(Clock::time_point now) {
  while (!unauthenticated_.empty() &&
         now - unauthenticated_.begin()->second.since > authentication_time_) {
    unauthenticated_.erase(unauthenticated_.begin());
  }
}

}  // namespace shardrec::comm::rendezvous
