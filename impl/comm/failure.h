// What killed a communicator. The first failure of a group is kept; every later call of every rank
// throws it, in a sentence seen from that rank. All engines word their failures here.
#pragma once

#include <cstdint>
#include <string>

namespace shardrec::comm {

enum class Cause : uint8_t {
  kDestroyed,  // the culprit's communicator was destroyed without leave(), and the witness waited
  kLeft,       // the culprit left in order, and the witness still waited
  kAbandoned,  // the culprit destroyed its end of the channel, and the witness waited
  kGaveUp,     // Communicator::fail() of the culprit
  kLate,       // the culprit did not post in the witness' time
  kUnread,     // the culprit did not release the witness' message in its time
  kOperation,  // culprit and witness are in different operations
  kArguments,  // in the same operation, with different details
  kSize,       // in the same operation, with different sizes
  kPurpose,    // on channels of different purpose
  kAborted,    // Communicator::abort() of the culprit
  kLost,       // the culprit is gone, as `reason` says: "its process ended", "silent for 4 s"
  kTransport,  // the way to the culprit failed, as `reason` says
  kGarbled,    // what came from the culprit is no message, for `reason`
};
inline constexpr int kCauses = 14;

struct Failure {
  Cause cause = Cause::kAborted;
  int culprit = 0;
  int witness = 0;  // who noticed
  uint64_t sequence = 0;
  std::string operation{};  // the witness'; for kGaveUp the culprit's
  std::string
      culprit_operation{};  // of a mismatch; where the culprit was last seen when it is late
  uint64_t size = 0;        // for kSize
  uint64_t culprit_size = 0;
  double seconds = 0;      // the deadline that passed
  std::string reason{};    // for kAborted, kLost, kTransport, kGarbled
  bool inherited = false;  // of the communicator that this one was split from; its numbers
};

// Where a rank is while it throws: in exchange `sequence` of `operation`, or in no operation.
struct CallSite {
  int rank = 0;
  const char* operation = "";
  uint64_t sequence = 0;
};

[[noreturn]] void throw_failure(const Failure& failure, const CallSite& site);

// "0.05": shortest digits that mean the same, whatever the locale.
std::string decimal(double value);

}  // namespace shardrec::comm
