// Threads that wait for each other inside a test.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

namespace shardrec::test {

// join() returns once the expected number of threads have called it. The wait is bounded, so that
// a failure is not a hang. A thread that joins again counts once. Any thread.
class Meeting {
 public:
  explicit Meeting(int expected = 0) : expected_(expected) {}
  // Forgets who has joined.
  void expect(int threads) {
    const std::lock_guard lock(mutex_);
    expected_ = threads;
    joined_.clear();
  }
  void join() {
    std::unique_lock lock(mutex_);
    joined_.insert(std::this_thread::get_id());
    all_.notify_all();
    all_.wait_for(lock, std::chrono::seconds(20), [&] { return std::ssize(joined_) >= expected_; });
  }
  // Number of threads that have joined.
  int64_t seen() const {
    const std::lock_guard lock(mutex_);
    return std::ssize(joined_);
  }
  bool complete() const {
    const std::lock_guard lock(mutex_);
    return std::ssize(joined_) >= expected_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable all_;
  int expected_;
  std::set<std::thread::id> joined_;
};

}  // namespace shardrec::test
