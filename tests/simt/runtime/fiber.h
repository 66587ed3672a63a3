// A fiber: a stack that a thread of the system enters and leaves where it wants. Announced to the
// sanitizers, so that the thread sanitizer takes each fiber for a thread that nothing orders.
//
// Thread rule: a fiber belongs to the thread that made it.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

namespace simt {

class Fiber {
 public:
  using Body = void (*)(void* argument);

  // The name is what the thread sanitizer's reports call it. Throws std::bad_alloc.
  explicit Fiber(const char* name);
  // Not while it is suspended in its body: what that has on the stack would be lost.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // What the next resume() enters.
  void start(Body body, void* argument) noexcept;
  // Until the body suspends or returns.
  void resume() noexcept;
  bool finished() const noexcept { return body_ == nullptr; }

  // Leaves the fiber that runs; on return it was resumed.
  void suspend() noexcept { leave(false); }

 private:
  static void loop(boost::context::detail::transfer_t from);
  void arrived(boost::context::detail::transfer_t from) noexcept;
  void leave(bool for_good) noexcept;

  unsigned char* memory_ = nullptr;  // a page that nobody may touch, then the stack
  boost::context::detail::fcontext_t context_ = nullptr;
  boost::context::detail::fcontext_t resumer_ = nullptr;
  Body body_ = nullptr;
  void* argument_ = nullptr;
  // What the address sanitizer keeps of a stack that is left, and the stack of the resumer.
  [[maybe_unused]] void* left_ = nullptr;
  [[maybe_unused]] const void* resumer_stack_ = nullptr;
  [[maybe_unused]] size_t resumer_stack_bytes_ = 0;
  // The thread sanitizer's handles.
  [[maybe_unused]] void* announced_ = nullptr;
  [[maybe_unused]] void* resumer_announced_ = nullptr;
};

}  // namespace simt
