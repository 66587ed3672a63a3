// The clock of all waits, and points in time on it.
#pragma once

#include <algorithm>
#include <chrono>

namespace shardrec::comm {

using Clock = std::chrono::steady_clock;

inline Clock::time_point after(Clock::time_point start, double seconds) {
  constexpr double kForever = 1e9;  // half of what the clock's 64 bits of nanoseconds can hold
  return start + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(std::min(seconds, kForever)));
}

inline double seconds_until(Clock::time_point end, Clock::time_point now) {
  return std::chrono::duration<double>(end - now).count();
}

}  // namespace shardrec::comm
