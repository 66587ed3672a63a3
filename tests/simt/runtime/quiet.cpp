#include "quiet.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace simt {
namespace {

// Many waits are shorter than falling asleep and being woken.
constexpr int kLooksBeforeSleep = 2000;

void wait_while(const uint32_t* word, uint32_t value) noexcept {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake(const uint32_t* word, int threads) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

}  // namespace

void QuietMutex::lock() noexcept {
  uint32_t free = 0;
  if (__atomic_compare_exchange_n(&state_, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
    return;
  }
  while (__atomic_exchange_n(&state_, 2, __ATOMIC_ACQUIRE) != 0) wait_while(&state_, 2);
}

void QuietMutex::unlock() noexcept {
  if (__atomic_exchange_n(&state_, 0, __ATOMIC_RELEASE) == 2) wake(&state_, 1);
}

// Whoever is about to sleep either is counted before the value changes, or sees that it has.
void QuietCounter::advance() noexcept {
  __atomic_fetch_add(&value_, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&sleepers_, __ATOMIC_SEQ_CST) != 0) wake(&value_, INT_MAX);
}

void QuietCounter::wait_past(uint32_t value) noexcept {
  for (int i = 0; i < kLooksBeforeSleep; ++i) {
    if (this->value() != value) return;
  }
  __atomic_fetch_add(&sleepers_, 1, __ATOMIC_SEQ_CST);
  while (this->value() == value) wait_while(&value_, value);
  __atomic_fetch_sub(&sleepers_, 1, __ATOMIC_RELAXED);
}

}  // namespace simt
