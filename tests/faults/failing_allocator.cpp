#include "faults/failing_allocator.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

// Initialised before any code of the thread runs: malloc may be called before main.
constinit thread_local bool armed = false;
constinit thread_local bool fired = false;
constinit thread_local bool lasting = false;
constinit thread_local int64_t left = 0;

constinit thread_local bool spared = false;
constinit std::atomic<bool> elsewhere_armed{false};
constinit std::atomic<bool> elsewhere_fired{false};
constinit std::atomic<bool> elsewhere_lasting{false};
constinit std::atomic<int64_t> elsewhere_left{0};

bool fails_elsewhere() noexcept {
  if (!elsewhere_armed.load() || spared) return false;
  if (elsewhere_fired.load()) return elsewhere_lasting.load();
  if (elsewhere_left.fetch_sub(1) != 1) return false;
  elsewhere_fired.store(true);
  return true;
}

bool fails() noexcept {
  if (!armed) return fails_elsewhere();
  if (fired) return lasting;
  if (--left > 0) return false;
  fired = true;
  return true;
}

}  // namespace

// How a function is named that stands in for another, and how that one is called.
#if SHARDREC_SANITIZED
#define SHARDREC_INSTEAD_OF(name) __wrap_##name  // by the linker's option --wrap
#define SHARDREC_REAL(name) __real_##name
#else
#define SHARDREC_INSTEAD_OF(name) name
#define SHARDREC_REAL(name) __libc_##name
#endif

// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void* SHARDREC_REAL(malloc)(size_t size);
void* SHARDREC_INSTEAD_OF(malloc)(size_t size) {
  if (!fails()) return SHARDREC_REAL(malloc)(size);
  errno = ENOMEM;
  return nullptr;
}

#if SHARDREC_SANITIZED
void* __real_aligned_alloc(size_t alignment, size_t size);
void* __real_mmap(void* address, size_t size, int protection, int flags, int file, off_t offset);
#else
void* __libc_calloc(size_t number, size_t size);
void* __libc_realloc(void* pointer, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
static void* __real_aligned_alloc(size_t alignment, size_t size) {
  return __libc_memalign(alignment, size);
}
static void* __real_mmap(void* address, size_t size, int protection, int flags, int file,
                         off_t offset) {
  return std::bit_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, file, offset));
}

void* calloc(size_t number, size_t size) {
  if (!fails()) return __libc_calloc(number, size);
  errno = ENOMEM;
  return nullptr;
}
void* realloc(void* pointer, size_t size) {
  if (!fails()) return __libc_realloc(pointer, size);
  errno = ENOMEM;
  return nullptr;
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (fails()) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}
#endif

void* SHARDREC_INSTEAD_OF(aligned_alloc)(size_t alignment, size_t size) {
  if (!fails()) return __real_aligned_alloc(alignment, size);
  errno = ENOMEM;
  return nullptr;
}
void* SHARDREC_INSTEAD_OF(mmap)(void* address, size_t size, int protection, int flags, int file,
                                off_t offset) noexcept {
  if (!fails()) return __real_mmap(address, size, protection, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}
}
// NOLINTEND(bugprone-reserved-identifier)

#ifndef SHARDREC_THREAD_SANITIZER
namespace {

void* take(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* take(size_t size, std::align_val_t alignment) {
  const auto align = static_cast<size_t>(alignment);
  void* memory =
      std::aligned_alloc(align, (size + align - 1) / align * align + (size == 0 ? align : 0));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The address sanitizer's operator new would not come here; the thread sanitizer's cannot be
// replaced.
void* operator new(size_t size) { return take(size); }
void* operator new[](size_t size) { return take(size); }
void* operator new(size_t size, std::align_val_t alignment) { return take(size, alignment); }
void* operator new[](size_t size, std::align_val_t alignment) { return take(size, alignment); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace shardrec::test {

void fail_allocation(int64_t k, Shortage shortage) {
  left = k;
  fired = false;
  lasting = shortage == Shortage::kLasting;
  armed = true;
}
bool allocation_has_failed() { return fired; }
bool end_shortage() {
  armed = false;
  return fired;
}

void fail_allocation_elsewhere(int64_t k, Shortage shortage) {
  elsewhere_left = k;
  elsewhere_fired = false;
  elsewhere_lasting = shortage == Shortage::kLasting;
  elsewhere_armed = true;
}
bool end_shortage_elsewhere() {
  elsewhere_armed = false;
  return elsewhere_fired;
}
void spare_this_thread() { spared = true; }

NoShortage::NoShortage() : armed_(armed) { armed = false; }
NoShortage::~NoShortage() { armed = armed_; }

}  // namespace shardrec::test
