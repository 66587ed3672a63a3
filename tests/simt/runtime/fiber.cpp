#include "fiber.h"

#include <sys/mman.h>

#include <new>

#include "quiet.h"
#include "sanitizers.h"

namespace simt {
namespace {

namespace context = boost::context::detail;

constexpr size_t kPage = 4096;
constexpr size_t kStack = size_t{128} << 10;
// Stacks begin at different places of their pages: else their ends, which are used most, would all lie in
// the same few lines of a cache.
constexpr size_t kShift = 128;

}  // namespace

Fiber::Fiber() noexcept {
#if defined(SHARDREC_THREAD_SANITIZER)
  announced_ = __tsan_get_current_fiber();
#endif
}

Fiber::Fiber(Body body, unsigned number) : body_(body), stack_bytes_(kStack) {
  void* memory = mmap(nullptr, kPage + kStack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, kPage, PROT_NONE);
  unsigned char* const stack = static_cast<unsigned char*>(memory) + kPage;
  stack_ = stack;
  const size_t shift = number * kShift % kPage;
  context_ = context::make_fcontext(stack + kStack - shift, kStack - shift, enter);
#if defined(SHARDREC_THREAD_SANITIZER)
  announced_ = __tsan_create_fiber(0);
#endif
}

void Fiber::set_name([[maybe_unused]] const char* name) noexcept {
#if defined(SHARDREC_THREAD_SANITIZER)
  __tsan_set_fiber_name(announced_, name);
#endif
}

void Fiber::enter(context::transfer_t by) {
  Fiber& self = arrive(by);
  self.body_(self);
}

namespace {

struct Pool {
  QuietMutex mutex;
  Fiber* first = nullptr;
  unsigned live = 0;
};
Pool pool;

}  // namespace

Fiber* take_fiber(Fiber::Body body) {
  const QuietLock lock(pool.mutex);
  if (Fiber* fiber = pool.first; fiber != nullptr) {
    pool.first = fiber->next;
    return fiber;
  }
  auto* const fiber = new Fiber(body, pool.live);
  ++pool.live;
  return fiber;
}

void give_back_fiber(Fiber* fiber) noexcept {
  const QuietLock lock(pool.mutex);
  fiber->next = pool.first;
  pool.first = fiber;
}

unsigned live_fibers() noexcept {
  const QuietLock lock(pool.mutex);
  return pool.live;
}

}  // namespace simt
