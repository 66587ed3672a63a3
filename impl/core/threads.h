// The threads of one rank: a oneTBB arena of fixed width. oneTBB is included in threads.cpp only,
// which is built without the thread sanitizer and tells it of fork and join.
//
// Thread rule: one parallel_for at a time per object, from any thread (BUSY is the C layer's job).
// All signals are blocked in worker threads. Bodies must not throw; they run in the default float
// mode (float_mode.h).
#pragma once

#include <cstdint>
#include <memory>

#include "core/function_ref.h"

namespace shardrec::core {

class Threads {
 public:
  // count >= 1: the calling thread and count - 1 workers. Throws OUT_OF_MEMORY where the system
  // would not start them.
  explicit Threads(int count);
  ~Threads();
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  int count() const noexcept { return count_; }

  // Calls body(begin, end) on disjoint pieces of [0, size) that cover it, each at most `grain`
  // long; returns when all are done. Which thread takes which piece is not fixed: results must not
  // depend on it. No allocation in a steady state.
  void parallel_for(int64_t size, int64_t grain, FunctionRef<void(int64_t, int64_t)> body);

  // Most threads that were inside a body at once since creation.
  int most_seen() const noexcept;

 private:
  struct Arena;
  int count_;
  std::unique_ptr<Arena> arena_;
};

// Default width for each of `ranks` ranks that share this process and no processor with any other:
// its part of what host.h says that the process may use, at least 1.
int default_thread_count(int ranks);

}  // namespace shardrec::core
