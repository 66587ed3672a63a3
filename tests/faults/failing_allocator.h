// Makes allocations of one thread, or of all but some, fail: malloc and its family, operator new,
// and anonymous mmap, wherever they are called from (the library, the C++ run time, oneTBB).
#pragma once

#include <cstdint>

namespace shardrec::test {

// From one allocation that fails to the next in tests that try them all. Under the sanitizers, which
// look for other errors than the tests do, every third: paths that clean up are passed many times.
constexpr int64_t kAllocationStride = SHARDREC_SANITIZED ? 3 : 1;

enum class Shortage : uint8_t {
  kOnce,    // the k-th allocation fails, those after it succeed
  kLasting  // the k-th and all that follow fail
};

// From now on the calling thread's k-th allocation (from 1) fails.
void fail_allocation(int64_t k, Shortage shortage);
// Ends that. True when an allocation has failed since fail_allocation.
bool end_shortage();
// Has an allocation failed since fail_allocation?
bool allocation_has_failed();

// The same of all threads but the spared ones, whose allocations are counted together: those that a
// library has started.
void fail_allocation_elsewhere(int64_t k, Shortage shortage);
bool end_shortage_elsewhere();
void spare_this_thread();

// Within its scope allocations of this thread neither fail nor count.
class NoShortage {
 public:
  NoShortage();
  ~NoShortage();
  NoShortage(const NoShortage&) = delete;
  NoShortage& operator=(const NoShortage&) = delete;

 private:
  bool armed_;
};

}  // namespace shardrec::test
