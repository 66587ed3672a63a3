// A lock and a counter to wait for, of which the thread sanitizer knows nothing: with those of the
// standard library, streams that merely enter the runtime one after the other would look ordered, and
// a missing wait between them would not be found.
#pragma once

#include <cstdint>

namespace simt {

class QuietMutex {
 public:
  void lock() noexcept;
  void unlock() noexcept;

 private:
  uint32_t state_ = 0;  // 0 free, 1 taken, 2 taken and perhaps waited for
};

class QuietLock {
 public:
  explicit QuietLock(QuietMutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  ~QuietLock() { mutex_.unlock(); }
  QuietLock(const QuietLock&) = delete;
  QuietLock& operator=(const QuietLock&) = delete;

 private:
  QuietMutex& mutex_;
};

// Only grows.
class QuietCounter {
 public:
  uint32_t value() const noexcept { return __atomic_load_n(&value_, __ATOMIC_ACQUIRE); }
  void advance() noexcept;
  // Until the value is another than this one.
  void wait_past(uint32_t value) noexcept;

 private:
  uint32_t value_ = 0;
  uint32_t sleepers_ = 0;
};

}  // namespace simt
