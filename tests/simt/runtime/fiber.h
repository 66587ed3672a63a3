// A fiber: a stack that a thread of the system enters and leaves where it wants. Fibers go from one to the
// other directly. Announced to the sanitizers, so that the thread sanitizer takes each fiber for a thread
// that nothing orders.
//
// Thread rule: one thread at a time.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "sanitizers.h"

namespace simt {

class Fiber {
 public:
  using Body = void (*)(Fiber& self);

  // The thread's own stack, which calls.
  Fiber() noexcept;
  // A stack of its own: the first go_to() enters the body, which never returns. number: among all of
  // them. Throws std::bad_alloc.
  Fiber(Body body, unsigned number);
  ~Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Leaves this fiber, which runs, for another one; returns when somebody goes to this one.
  void go_to(Fiber& other) noexcept;
  // What the thread sanitizer's reports call it.
  void set_name(const char* name) noexcept;

  void* owner = nullptr;  // the body's to know
  Fiber* next = nullptr;  // in a list of its holder's

 private:
  struct Way {
    Fiber* from;
    Fiber* to;
  };
  static void enter(boost::context::detail::transfer_t by);
  static Fiber& arrive(boost::context::detail::transfer_t by) noexcept;

  boost::context::detail::fcontext_t context_ = nullptr;  // while it does not run
  Body body_ = nullptr;
  // The stack without the page before it, which nobody may touch; a thread's own is known once left.
  [[maybe_unused]] const void* stack_ = nullptr;
  [[maybe_unused]] size_t stack_bytes_ = 0;
  [[maybe_unused]] void* left_ = nullptr;       // what the address sanitizer keeps of what was left
  [[maybe_unused]] void* announced_ = nullptr;  // the thread sanitizer's handle
};

inline void Fiber::go_to(Fiber& other) noexcept {
#if defined(SHARDREC_THREAD_SANITIZER)
  __tsan_switch_to_fiber(other.announced_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(SHARDREC_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&left_, other.stack_, other.stack_bytes_);
#endif
  Way way{.from = this, .to = &other};
  arrive(boost::context::detail::jump_fcontext(other.context_, &way));
}

// On the stack of the fiber that was gone to.
inline Fiber& Fiber::arrive(boost::context::detail::transfer_t by) noexcept {
  const auto [from, to] = *static_cast<const Way*>(by.data);
  from->context_ = by.fctx;
#if defined(SHARDREC_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(to->left_, &from->stack_, &from->stack_bytes_);
#endif
  return *to;
}

// Fibers that nobody uses are kept for the next who does: each takes longer to make than a block to run.
// They have all one body. Any thread.
Fiber* take_fiber(Fiber::Body body);  // throws std::bad_alloc
void give_back_fiber(Fiber* fiber) noexcept;
unsigned live_fibers() noexcept;  // that were ever made

}  // namespace simt
