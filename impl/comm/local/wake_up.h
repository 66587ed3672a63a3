// The condition variable on which one rank sleeps on one channel. The sleeper stores what it waits for
// before it checks its condition a last time. A thread that fulfils the condition loads what the
// sleeper waits for afterwards. Both accesses are sequentially consistent, so one of the two threads
// sees the other and no wake-up is lost. Nothing is locked if the rank is awake.
//
// Thread rule: one sleeper at a time; any thread may wake it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "comm/clock.h"

namespace shardrec::comm::local {

enum class WaitFor : uint8_t {
  kNothing,
  kArrival,  // the last message of an exchange
  kRelease,  // the last reader's acknowledgement
};

class WakeUp {
 public:
  // Returns when awake() is true, or at `until`. awake() is called under no lock but this object's.
  template <class Awake>
  void sleep(WaitFor wait_for, Clock::time_point until, Awake awake) {
    std::unique_lock lock(mutex_);
    wait_for_.store(wait_for);
    while (!awake() && wakeup_.wait_until(lock, until) == std::cv_status::no_timeout) {
    }
    wait_for_.store(WaitFor::kNothing);
  }

  void wake_if(WaitFor brought) noexcept {
    if (wait_for_.load() == brought) wake();
  }
  void wake_in_any_case() noexcept {
    if (wait_for_.load() != WaitFor::kNothing) wake();
  }

 private:
  void wake() noexcept {
    // Taking the mutex waits until the sleeper is inside wait_until.
    {
      const std::lock_guard lock(mutex_);
    }
    wakeup_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable wakeup_;
  std::atomic<WaitFor> wait_for_{WaitFor::kNothing};
};

}  // namespace shardrec::comm::local
