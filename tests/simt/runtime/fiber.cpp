#include "fiber.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

#include "sanitizers.h"

namespace simt {
namespace {

namespace context = boost::context::detail;

constexpr size_t kPage = 4096;
constexpr size_t kStack = size_t{128} << 10;

}  // namespace

Fiber::Fiber([[maybe_unused]] const char* name) {
  void* memory = mmap(nullptr, kPage + kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<unsigned char*>(memory);
  mprotect(memory_, kPage, PROT_NONE);
  context_ = context::make_fcontext(memory_ + kPage + kStack, kStack, loop);
#if defined(SHARDREC_THREAD_SANITIZER)
  announced_ = __tsan_create_fiber(0);
  __tsan_set_fiber_name(announced_, name);
#endif
}

Fiber::~Fiber() {
  body_ = nullptr;
  resume();  // the loop ends
#if defined(SHARDREC_THREAD_SANITIZER)
  __tsan_destroy_fiber(announced_);
#endif
  unpoison(memory_ + kPage, kStack);
  munmap(memory_, kPage + kStack);
}

void Fiber::start(Body body, void* argument) noexcept {
  body_ = body;
  argument_ = argument;
}

void Fiber::resume() noexcept {
#if defined(SHARDREC_THREAD_SANITIZER)
  resumer_announced_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(announced_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(SIMT_ADDRESS_SANITIZER)
  void* left = nullptr;
  __sanitizer_start_switch_fiber(&left, memory_ + kPage, kStack);
#endif
  context_ = context::jump_fcontext(context_, this).fctx;
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(left, nullptr, nullptr);
#endif
}

void Fiber::arrived(context::transfer_t from) noexcept {
  resumer_ = from.fctx;
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(left_, &resumer_stack_, &resumer_stack_bytes_);
#endif
}

void Fiber::leave([[maybe_unused]] bool for_good) noexcept {
#if defined(SHARDREC_THREAD_SANITIZER)
  __tsan_switch_to_fiber(resumer_announced_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &left_, resumer_stack_, resumer_stack_bytes_);
#endif
  arrived(context::jump_fcontext(resumer_, nullptr));
}

void Fiber::loop(context::transfer_t from) {
  Fiber& fiber = *static_cast<Fiber*>(from.data);
  fiber.arrived(from);
  while (fiber.body_ != nullptr) {
    fiber.body_(fiber.argument_);
    fiber.body_ = nullptr;
    fiber.leave(false);
  }
  fiber.leave(true);
  std::abort();  // nobody resumes it
}

}  // namespace simt
