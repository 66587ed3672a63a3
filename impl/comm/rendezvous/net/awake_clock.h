// Time that this process has lived through: a gap between two ticks counts as `most` at most. A
// process that was stopped, or a machine that slept, does not take its own absence for the silence
// of its peers. One thread at a time.
#pragma once

#include <algorithm>

#include "comm/rendezvous/protocol/limits.h"

namespace shardrec::comm::rendezvous {

class AwakeClock {
 public:
  AwakeClock(Clock::time_point start, Clock::duration most) : last_(start), most_(most) {}

  // To be called more often than every `most`.
  void tick(Clock::time_point now) noexcept {
    awake_ += std::clamp(now - last_, Clock::duration::zero(), most_);
    last_ = std::max(last_, now);
  }
  Clock::duration now() const noexcept { return awake_; }

 private:
  Clock::time_point last_;
  Clock::duration most_;
  Clock::duration awake_{0};
};

}  // namespace shardrec::comm::rendezvous
