#include "comm/remote/clock_offset.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "comm/clock.h"
#include "comm/failure.h"
#include "comm/plugin/transport_plugin.h"
#include "core/error.h"
#include "core/random.h"

namespace shardrec::comm::remote {
namespace {

constexpr const char* kOperation = "comm_create";

// How long a wait lasts before it is asked whether the communicator lives.
constexpr double kGlance = 0.05;
// A broken connection is noticed before the group state arrives that says why it broke.
constexpr auto kGrace = std::chrono::milliseconds(400);

// The plain bytes of one kind of machine: a job's processes run the same build.
struct Question {
  bool last = false;  // the rest holds what was found
  core::ClockOffset found{};
};
struct Answer {
  int64_t time = 0;
};

// Of questions and answers in turn: when a tag comes back, both ends are through with it.
uint32_t tag_of(int round) {
  constexpr uint32_t kHighest = (uint32_t{1} << SHARDREC_TRANSPORT_TAG_BITS) - 1;
  return kHighest - 1 - static_cast<uint32_t>(round % 2);
}

template <class T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

class Measurement {
 public:
  Measurement(Communicator& communicator, Carrier& carrier, const ClockMeasurement& how)
      : communicator_(communicator),
        carrier_(carrier),
        how_(how),
        // Rank 0 knows who is late: the others, who wait for it, leave it the time to say so.
        deadline_(
            after(Clock::now(), communicator.rank() == 0 ? how.seconds : 1.25 * how.seconds + 1)) {}

  core::ClockOffset run() {
    if (communicator_.rank() != 0) return answer();
    core::ClockOffset own{};
    core::fill_random(std::as_writable_bytes(std::span(&own.reference, 1)));
    for (int peer = 1; peer < communicator_.size(); ++peer) ask(peer, own.reference);
    return own;
  }

 private:
  void ask(int peer, uint64_t reference) {
    int64_t least = std::numeric_limits<int64_t>::max();
    Question question;
    for (int round = 0; round < how_.rounds; ++round) {
      Answer answer;
      const auto receiving = receive(peer, tag_of(round), bytes_of(answer));
      const int64_t start = how_.now();
      const auto sending = send(peer, tag_of(round), bytes_of(question));
      finish(*receiving, peer);
      const int64_t end = how_.now();
      finish(*sending, peer);
      if (end - start >= least) continue;
      least = end - start;
      question.found = {.reference = reference,
                        .rank = peer,
                        .offset = start + least / 2 - answer.time,
                        .uncertainty = (least + 1) / 2};
    }
    question.last = true;
    finish(*send(peer, tag_of(how_.rounds), bytes_of(question)), peer);
  }

  core::ClockOffset answer() {
    for (int round = 0;; ++round) {
      Question question;
      finish(*receive(0, tag_of(round), bytes_of(question)), 0);
      if (question.last) return question.found;
      Answer answer{.time = how_.now()};
      finish(*send(0, tag_of(round), bytes_of(answer)), 0);
    }
  }

  std::unique_ptr<Request> send(int peer, uint32_t tag, ConstBytes data) {
    return begun(peer, [&] { return carrier_.send(peer, tag, data); });
  }
  std::unique_ptr<Request> receive(int peer, uint32_t tag, std::span<std::byte> data) {
    return begun(peer, [&] { return carrier_.receive(peer, tag, data); });
  }
  template <class Begin>
  std::unique_ptr<Request> begun(int peer, const Begin& begin) {
    try {
      return begin();
    } catch (const core::Error& error) {
      if (error.status() != SHARDREC_PEER_FAILED) throw;
      give_up(peer, error.sentence());
    }
  }

  void finish(Request& request, int peer) {
    for (;;) {
      const double left = seconds_until(deadline_, Clock::now());
      const Result result = request.wait(std::clamp(left, 0.0, kGlance));
      if (result.outcome == Outcome::kDone) return;
      communicator_.check_before(kOperation);
      if (result.outcome != Outcome::kTimeout) give_up(peer, result.text);
      if (left > 0) continue;
      core::fail(SHARDREC_TIMEOUT,
                 core::sentence("rank ", peer, " has not compared its clock with that of rank ",
                                communicator_.rank(), " within ", decimal(how_.seconds), " s"),
                 {.rank = peer, .operation = kOperation});
    }
  }

  [[noreturn]] void give_up(int peer, const std::string& why) const {
    const Clock::time_point until = Clock::now() + kGrace;
    while (Clock::now() < until) {
      communicator_.check_before(kOperation);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    core::fail(SHARDREC_PEER_FAILED,
               core::sentence("rank ", peer, " cannot be reached while clocks are compared",
                              why.empty() ? "" : ": ", why),
               {.rank = peer, .operation = kOperation});
  }

  Communicator& communicator_;
  Carrier& carrier_;
  const ClockMeasurement& how_;
  const Clock::time_point deadline_;
};

}  // namespace

core::ClockOffset measure_clock(Communicator& communicator, Carrier& carrier,
                                const ClockMeasurement& how) {
  try {
    return Measurement(communicator, carrier, how).run();
  } catch (...) {
    communicator.fail(kOperation);
    throw;
  }
}

}  // namespace shardrec::comm::remote
