// What runs the blocks of one thread of the system, and how its threads leave.
#pragma once

#include "block_state.h"
#include "sanitizers.h"
#include "turns.h"

namespace simt {

class Runner::State {
 public:
  State() = default;
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void run(const Kernel& kernel, const Shape& shape, const Schedule& schedule);
  // The running thread lets others go on until it can.
  void leave() noexcept;

  // Of the thread of the system.
  static thread_local State* current __attribute__((tls_model("initial-exec")));

 private:
  static constexpr unsigned kSets = kThreadSanitizer ? 2 : 1;

  unsigned prepare_fibers(unsigned threads, unsigned blocks);
  Fiber* take() noexcept;
  void give_back_sets() noexcept;
  void run_block();
  Thread* next() noexcept;
  void run_thread() noexcept;
  static void run_threads(Fiber& self);

  Block block_;
  Turns* turns_ = nullptr;  // of the launch
  unsigned launches_ = 0;
  Fiber own_;               // the stack of the thread of the system
  Fiber* spare_ = nullptr;  // on which there is no thread of the block
  FiberSet sets_[kSets];    // fibers of threads: with the thread sanitizer only
  // Of the launch, for the thread sanitizer: what came before it, what its threads did.
  uint64_t begin_ = 0;
  uint64_t end_ = 0;
};

// Inline, as what it calls: after a switch the processor guesses each return wrong.
inline void Runner::State::leave() noexcept {
  Fiber* const own = block_.running->fiber;
  Fiber* const other = next()->fiber;
  if (other != own) own->go_to(*other);
}

// The running thread waits, in this state, until it is let go on.
inline void leave_thread(Thread& thread, ThreadState state) noexcept {
  thread.state = state;
  current_block->warps[thread.index / kLanes].ready &= ~(1U << thread.index % kLanes);
  Runner::State::current->leave();
}

}  // namespace simt
