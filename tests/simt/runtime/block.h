// Runs the blocks of kernels, one after the other, with a fiber for each thread of a block: it runs
// until it waits in a barrier or in a warp operation, or returns. A warp runs until all of its threads
// wait for others; which warp, which lane and which block is next is the order that tests choose.
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

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace simt
