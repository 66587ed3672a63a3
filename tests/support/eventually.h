// What other threads and processes bring about, waited for by asking: the one place where tests sleep between two
// questions. tests/structure counts all other sleeps of tests.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace shardrec::test {

// Asks until the condition holds: true at once then, false if it does not hold after so many seconds.
template <class Condition>
[[nodiscard]] bool eventually(const Condition& condition, double seconds = 60) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::chrono::microseconds pause(50);
  while (!condition()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(2000));
  }
  return true;
}

}  // namespace shardrec::test
