// Counts what the whole process allocates, and the bytes that it has mapped. Included by one file of a test program, since it defines malloc
// and its like; under a sanitizer, whose allocator they would replace, nothing is counted.
#pragma once

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
[[maybe_unused]] std::atomic<int64_t> mapped_bytes{0};  // without malloc's own mappings

[[maybe_unused]] void count() noexcept {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
}

[[maybe_unused]] int64_t whole_pages(size_t size) noexcept {
  return static_cast<int64_t>((size + 4095) / 4096 * 4096);
}

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARDREC_SANITIZER_OWNS_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDREC_SANITIZER_OWNS_MALLOC 1
#endif
#endif

#ifndef SHARDREC_SANITIZER_OWNS_MALLOC
// glibc's own entry points, under the names that everything in the process calls.
extern "C" {
void* __libc_malloc(size_t size);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t size);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* pointer, size_t size);      // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t size);  // NOLINT(bugprone-reserved-identifier)

void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t number, size_t size) {
  count();
  return __libc_calloc(number, size);
}
void* realloc(void* pointer, size_t size) {
  count();
  return __libc_realloc(pointer, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
void* memalign(size_t alignment, size_t size) {
  count();
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  count();
  *out = __libc_memalign(alignment, size);
  return *out == nullptr ? 12 : 0;
}
void* mmap(void* where, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  const long made = syscall(SYS_mmap, where, size, protection, flags, file, offset);
  if (made != -1) mapped_bytes.fetch_add(whole_pages(size));
  return (void*)made;
}
int munmap(void* where, size_t size) noexcept {
  const long failed = syscall(SYS_munmap, where, size);
  if (failed == 0) mapped_bytes.fetch_sub(whole_pages(size));
  return static_cast<int>(failed);
}
}
#define SHARDREC_COUNTS_ALLOCATIONS 1
#endif
