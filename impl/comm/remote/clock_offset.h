// How far the clocks of a group's processes are apart, measured when they meet: rank 0 asks each
// rank in turn what time it is, some times over, and believes the answer that came fastest. Who
// answers within a round trip of d has read its clock in the middle of it, give or take d / 2.
//
// Collective over the link, on tags that no channel uses yet.
#pragma once

#include <cstdint>
#include <functional>

#include "comm/communicator.h"
#include "comm/remote/link.h"
#include "core/trace.h"

namespace shardrec::comm::remote {

struct ClockMeasurement {
  int rounds = 8;
  double seconds = 1800;
  // Nanoseconds of this process' clock; but for tests, that of the trace.
  std::function<int64_t()> now = [] {
    return std::chrono::nanoseconds(core::TraceClock::now().time_since_epoch()).count();
  };
};

// communicator: the one that was made over the carrier, asked whether it lives; it dies when this
// throws (PEER_FAILED, TIMEOUT, OUT_OF_MEMORY, what the communicator's check() throws).
core::ClockOffset measure_clock(Communicator& communicator, Carrier& carrier,
                                const ClockMeasurement& how = {});

}  // namespace shardrec::comm::remote
