// Holds the arithmetic of this thread in the default mode for a scope: round to nearest even,
// subnormal numbers kept, no traps. Hosts change the mode (a library linked with fast-math flushes
// subnormals to zero in every thread), and our bits must not depend on it. The host's mode comes
// back afterwards.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace shardrec::core {

class DefaultFloatMode {
 public:
  DefaultFloatMode() noexcept : before_(get()) {
    if (before_ != kDefault) set(kDefault);
  }
  ~DefaultFloatMode() {
    if (before_ != kDefault) set(before_);
  }
  DefaultFloatMode(const DefaultFloatMode&) = delete;
  DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr uint32_t kFlags = 0x3F;  // sticky flags: no part of the mode
  static constexpr uint32_t kDefault = 0x1F80;
  static uint32_t get() noexcept { return _mm_getcsr() & ~kFlags; }
  static void set(uint32_t mode) noexcept { _mm_setcsr(mode | (_mm_getcsr() & kFlags)); }
  uint32_t before_;
#elif defined(__aarch64__)
  static constexpr uint64_t kDefault = 0;
  static uint64_t get() noexcept {
    uint64_t mode;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set(uint64_t mode) noexcept { asm volatile("msr fpcr, %0" : : "r"(mode)); }
  uint64_t before_;
#else
  static constexpr int kDefault = 0;
  static int get() noexcept { return kDefault; }
  static void set(int) noexcept {}
  int before_;
#endif
};

}  // namespace shardrec::core
