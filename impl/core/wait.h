// Waiting for a condition without an end. The standard library's own way to do so is of a later run-time library than
// releases need.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace shardrec::core {

template <class Condition>
void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
          const Condition& holds) {
  while (!changed.wait_for(lock, std::chrono::hours(1), holds)) {
  }
}

}  // namespace shardrec::core
