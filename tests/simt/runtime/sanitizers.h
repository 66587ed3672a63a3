// What the sanitizers are told. The files of this folder are built without the address and the thread
// sanitizer (with SHARDREC_ADDRESS_SANITIZER, SHARDREC_THREAD_SANITIZER where the program has them). The
// one would make each switch of fibers slow; the other must see what kernels and copies touch, and of the
// order of things only what streams, events, barriers and warp operations promise. Therefore also the locks
// of this folder are its own (quiet.h). Copies are calls of memcpy and the like, which both look into.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SIMT_BUILT_WITH_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SIMT_BUILT_WITH_SANITIZER 1
#endif
#endif
#if defined(SIMT_BUILT_WITH_SANITIZER)
#error "build this folder with -fno-sanitize=address,thread and the definitions named above"
#endif

#if defined(SHARDREC_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif
#if defined(SHARDREC_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif
#if defined(SHARDREC_ADDRESS_SANITIZER) || defined(SHARDREC_THREAD_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

#if defined(SHARDREC_ADDRESS_SANITIZER)
inline constexpr bool kAddressSanitizer = true;
inline void poison(const void* at, size_t bytes) { __asan_poison_memory_region(at, bytes); }
inline void unpoison(const void* at, size_t bytes) { __asan_unpoison_memory_region(at, bytes); }
#else
inline constexpr bool kAddressSanitizer = false;
inline void poison(const void* /*at*/, size_t /*bytes*/) {}
inline void unpoison(const void* /*at*/, size_t /*bytes*/) {}
#endif

// What happened before release(word) happens before what follows acquire(word).
#if defined(SHARDREC_THREAD_SANITIZER)
inline constexpr bool kThreadSanitizer = true;
inline void release(void* word) { __tsan_release(word); }
inline void acquire(void* word) { __tsan_acquire(word); }
#else
inline constexpr bool kThreadSanitizer = false;
inline void release(void* /*word*/) {}
inline void acquire(void* /*word*/) {}
#endif

}  // namespace simt
