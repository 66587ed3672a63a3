#include "comm/rendezvous/reception.h"

#include <bit>
#include <cerrno>

#include "core/error.h"
#include "core/log.h"

namespace shardrec::comm::rendezvous {
namespace {

constexpr int kMostAtOnce = 64;

}  // namespace

bool Reception::open_door(Poller& poller, uint64_t& next_name, Clock::time_point now) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    Socket socket(
        ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        if (!strangers_.empty()) strangers_.erase(strangers_.begin());
        return false;
      }
      return true;  // nobody waits, or who waited has gone
    }
    if (strangers_.size() >= kMostStrangers) strangers_.erase(strangers_.begin());
    Stranger stranger{.socket = std::move(socket), .since = now};
    stranger.socket.watch(patience_);
    core::fill_random(stranger.nonce);
    const Challenge challenge = make_challenge(job_, stranger.nonce);
    const Io io = stranger.socket.write(challenge);
    if (io.outcome != Io::Outcome::kDone || io.bytes != challenge.size()) continue;
    const uint64_t name = next_name++;
    poller.add(stranger.socket.descriptor(), name);
    strangers_.emplace(name, std::move(stranger));
  }
  return true;
}

std::optional<Reception::Guest> Reception::listen_to(uint64_t name) {
  const auto found = strangers_.find(name);
  Stranger& stranger = found->second;
  const Io io = stranger.socket.read(std::span(stranger.answer).subspan(stranger.got));
  if (io.outcome == Io::Outcome::kLater) return std::nullopt;
  if (io.outcome == Io::Outcome::kEnded) {
    strangers_.erase(found);
    return std::nullopt;
  }
  stranger.got += io.bytes;
  if (stranger.got < stranger.answer.size()) return std::nullopt;
  Stranger heard = std::move(stranger);
  strangers_.erase(found);
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
  return Guest{.socket = std::move(heard.socket),
               .rank = *rank,
               .verdict = make_verdict(key_, heard.nonce, heard.answer, Code::kWelcome)};
}

void Reception::end() noexcept {
  strangers_.clear();
  listener_ = Socket();
}

void Reception::clear(Clock::time_point now) {
  while (!strangers_.empty() && now - strangers_.begin()->second.since > patience_) {
    strangers_.erase(strangers_.begin());
  }
}

}  // namespace shardrec::comm::rendezvous
