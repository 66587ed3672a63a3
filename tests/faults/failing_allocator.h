// Makes allocations of one thread, or of all but some, fail: malloc and its family, operator new,
// and anonymous mmap, wherever they are called from (the library, the C++ run time, oneTBB).
#pragma once

#include <cstdint>
#include <cstdlib>

namespace shardrec::test {

// From one allocation that fails to the next in tests that go through all of them: 1 with tests/run --long
// (ctest's test_faults_whole). Paths that clean up are passed many times: else every third stands for its
// neighbours, and every fifth under the sanitizers.
inline bool every_allocation() { return std::getenv("SHARDREC_TEST_EVERY_ALLOCATION") != nullptr; }
inline int64_t allocation_stride() { return every_allocation() ? 1 : SHARDREC_SANITIZED ? 5 : 3; }

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
