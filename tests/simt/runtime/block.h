// Runs the blocks of kernels, one after the other, and the threads of a block in turns (turns.h): each
// runs until it waits in a barrier or in a warp operation, or returns. A thread that waits keeps the
// fiber that it is on; where one returns, one that has not begun goes on without a switch.
//
// A rule that a kernel breaks (warp.h) ends the process, with a sentence and a list of where each thread
// of the block is.
//
// Thread rule: a Runner belongs to a thread of the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "simt.h"

namespace simt {

enum class Order : int { kAscending, kDescending, kRandom };

struct Schedule {
  Order order = Order::kAscending;
  uint64_t seed = 0;
};

inline constexpr unsigned kMostThreads = 1024;  // of a block

class Runner {
 public:
  // Throws std::bad_alloc, as run() does.
  Runner();
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void run(const Kernel& kernel, const Shape& shape, const Schedule& schedule);

  class State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace simt
