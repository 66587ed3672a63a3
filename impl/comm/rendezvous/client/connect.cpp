#include "comm/rendezvous/client/connect.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "comm/clock.h"
#include "comm/rendezvous/client/rendezvous.h"
#include "comm/rendezvous/protocol/handshake.h"
#include "core/error.h"

namespace shardrec::comm::rendezvous {
namespace {

using core::fail;
using core::sentence;

constexpr milliseconds kFirstPause{20};
constexpr milliseconds kLongestPause{500};
// After a deadline: both ends may have been stopped together, and one goes on a little later.
constexpr milliseconds kLastLook{200};

// A server that has started and is well listens, and answers. These say how long it may seem not
// to.
constexpr milliseconds kMostRefusing{500};
constexpr milliseconds kMostSilent{static_cast<int64_t>(kSilenceSeconds * 1000)};

// What ended one try; another may go better.
struct Failed {
  std::string why;
  enum class How : uint8_t { kOther, kRefused, kSilent } how = How::kOther;
};

// Waits until the socket is ready for `events`; false at the deadline.
bool wait_for(const Socket& socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    pollfd waited{.fd = socket.descriptor(), .events = events, .revents = 0};
    const int ready =
        ::poll(&waited, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60000)));
    if (ready > 0) return true;
    if (Clock::now() >= deadline) return ::poll(&waited, 1, kLastLook.count()) > 0;
    if (ready < 0 && errno != EINTR) throw Failed{reason_of(errno)};
  }
}

void read_all(const Socket& socket, std::span<std::byte> out, Clock::time_point deadline) {
  while (!out.empty()) {
    const Io io = socket.read(out);
    if (io.outcome == Io::Outcome::kEnded) {
      throw Failed{
          sentence("the connection ended before both ends had proved who they are: ", io.how)};
    }
    out = out.subspan(io.bytes);
    if (!out.empty() && !wait_for(socket, POLLIN, deadline)) {
      throw Failed{"what listens there does not speak as a rendezvous does", Failed::How::kSilent};
    }
  }
}

Connection try_address(const Address& address, const Token& token, const Key& key, int rank,
                       const Nonce& nonce, Clock::time_point deadline) {
  Socket socket = Socket::connect(address);
  if (!wait_for(socket, POLLOUT, deadline)) throw Failed{"no answer"};
  if (const int error = socket.connect_error(); error != 0) {
    throw Failed{reason_of(error),
                 error == ECONNREFUSED ? Failed::How::kRefused : Failed::How::kOther};
  }
  socket.watch(kHandshakeTime);
  Challenge challenge{};
  read_all(socket, challenge, deadline);
  const Answer answer = answer_challenge(key, token.job, challenge, rank, nonce, token.address());
  const Io io = socket.write(answer);
  if (io.outcome != Io::Outcome::kDone || io.bytes != answer.size()) {
    throw Failed{sentence("the connection ended: ", io.how)};
  }
  Verdict verdict{};
  read_all(socket, verdict, deadline);
  check_verdict(key, challenge, answer, verdict, token.address());
  return Connection(std::move(socket));
}

[[noreturn]] void fail_for_gone(const Token& token, const std::string& why) {
  throw ServerGone(sentence("rank 0 is gone, or whoever else holds the rendezvous at ",
                            token.address(), ": ", why));
}

[[noreturn]] void fail_for_late(const Token& token, const std::string& why,
                                Clock::duration waited) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(waited).count();
  throw ServerGone(sentence("nothing has listened at ", token.address(),
                            ", where rank 0 is to, for ", seconds, " s: ", why,
                            "; rank 0 has ended, or comes later than "
                            "SHARDREC_OPTION_RANK_ZERO_SECONDS allows"));
}

}  // namespace

Connection connect(const Token& token, int rank, Clock::time_point deadline, const Belief& belief) {
  using How = Failed::How;
  const Key key(token.secret, token.job);
  const auto began = Clock::now();
  const milliseconds longest_try = belief.has_started ? kMostSilent : kHandshakeTime;
  const auto most_refusing =
      belief.has_started
          ? Clock::duration(kMostRefusing)
          : after(Clock::time_point(), belief.seconds_until_start).time_since_epoch();
  milliseconds pause = kFirstPause;
  auto refused_since = began;
  for (;;) {
    std::string why;
    How how = How::kOther;
    for (const Address& address : look_up(token.host, token.port, why)) {
      const auto try_ends = std::min(deadline, Clock::now() + longest_try);
      const auto nonce = random_bytes<kNonceBytes>();  // no other try helps where there is none
      try {
        return try_address(address, token, key, rank, nonce, try_ends);
      } catch (const Failed& failed) {
        why = failed.why;
        how = failed.how;
        if (how == How::kSilent && belief.has_started && try_ends < deadline) {
          fail_for_gone(token, sentence("it has said nothing for ", kMostSilent.count(), " ms"));
        }
      } catch (const core::Error& error) {
        if (error.status() != SHARDREC_IO_ERROR) throw;
        why = error.sentence();
        how = error.parts().value == ECONNREFUSED ? How::kRefused : How::kOther;
      }
    }
    const auto now = Clock::now();
    if (how != How::kRefused) refused_since = now;
    if (now - refused_since >= most_refusing && now < deadline) {
      if (belief.has_started) fail_for_gone(token, "nothing listens there any more: " + why);
      fail_for_late(token, why, most_refusing);
    }
    if (now >= deadline) {
      const auto waited = std::chrono::duration_cast<milliseconds>(now - began);
      fail(SHARDREC_TIMEOUT,
           sentence("rank ", rank, " did not reach the rendezvous at ", token.address(), " within ",
                    waited.count(), " ms: ", why,
                    "; it must run, in rank 0's process as a rule, before that time has passed"),
           {.rank = 0, .operation = "join"});
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, deadline - now));
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace shardrec::comm::rendezvous
