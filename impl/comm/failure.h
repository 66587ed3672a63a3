// Why a communicator is dead. A group keeps its first failure. Every later call of every rank throws
// it, with a sentence from that rank's point of view. The sentences of all engines are written here.
#pragma once

#include <cstdint>
#include <string>

namespace shardrec::comm {

enum class Cause : uint8_t {
  kDestroyed,  // the failed rank's communicator was destroyed without leave(), and the observer waited
  kLeft,       // the failed rank left in order, and the observer still waited
  kAbandoned,   // the failed rank destroyed its end of the channel, and the observer waited
  kGaveUp,      // Communicator::fail() of the failed rank
  kLate,        // the failed rank did not post in the observer's time
  kUnread,      // the failed rank did not release the observer's message in its time
  kOperation,   // failed rank and observer are in different operations
  kArguments,   // in the same operation, with different details
  kSize,        // in the same operation, with different sizes
  kPurpose,     // on channels of different purpose
  kAborted,     // Communicator::abort() of the failed rank
  kLost,        // the failed rank is gone, as `reason` says: "its process ended", "silent for 4 s"
  kTransport,   // the connection to the failed rank broke; `reason` says how
  kGarbled,     // the failed rank sent something that is no message; `reason` says why
  kDevice,      // what the failed rank's device sends or receives failed; `reason` says how
  kDeviceLate,  // what the failed rank's device sends and receives was not over in its time
};
inline constexpr int kCauses = 16;

struct Failure {
  Cause cause = Cause::kAborted;
  int failed_rank = 0;
  int observer = 0;  // the rank that noticed
  uint64_t sequence = 0;
  std::string operation{};  // the observer's; for kGaveUp the failed rank's
  std::string
      failed_rank_operation{};  // of a mismatch; where the failed rank was last seen when it is late
  uint64_t size = 0;            // for kSize
  uint64_t failed_rank_size = 0;
  double seconds = 0;      // the deadline that passed
  std::string reason{};    // for kAborted, kLost, kTransport, kGarbled, kDevice
  bool inherited = false;  // the communicator that this one was split from failed; ranks are its
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
