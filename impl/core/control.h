// Progress and cancellation of long work, shared by the thread that works and those that watch.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/error.h"

namespace shardrec::core {

class Control {
 public:
  void start(int64_t total) noexcept {
    done_.store(0, std::memory_order_relaxed);
    total_.store(total, std::memory_order_relaxed);
  }
  // Adds to what is done, for work that can no longer be cancelled.
  void add(int64_t amount) noexcept { done_.fetch_add(amount, std::memory_order_relaxed); }
  // Adds to what is done; throws CANCELLED when somebody asked for it.
  void advance(int64_t amount) {
    add(amount);
    check();
  }
  void check() const {
    if (cancelled_.load(std::memory_order_relaxed)) {
      fail(SHARDREC_CANCELLED, "the work was cancelled through its control");
    }
  }
  void cancel() noexcept { cancelled_.store(true, std::memory_order_relaxed); }
  int64_t done() const noexcept { return done_.load(std::memory_order_relaxed); }
  int64_t total() const noexcept { return total_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> total_{0};
  std::atomic<bool> cancelled_{false};
};

}  // namespace shardrec::core
