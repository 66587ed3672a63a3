// What kernels are written in: one source for the device's compiler and, in tests, for the host's
// (tests/simt).
//
// Rules that both keep: shared memory is dynamic only, and asked for by shared<T>(); blocks have
// kThreads threads in one dimension; no atomic operation on floats; no thread waits for another block but those of
// a chained scan (chained_scan.h), which wait only for blocks that have begun before theirs: any other may not begin
// before the waiting one ends, here and on the host.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if !defined(__CUDACC__)
#include <source_location>
#endif

#include "compute/cuda/kernels/calls.h"

namespace shardrec::compute::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / kWarp;  // of a block
inline constexpr unsigned kAllLanes = ~0U;

// A kernel of kThreads threads, so many blocks of which shall fit one multiprocessor.
#define SHARDREC_KERNEL(blocks) __global__ void __launch_bounds__(kThreads, blocks)
#define SHARDREC_DEVICE __device__ __forceinline__

// The shared memory of the block as a T.
#if defined(__CUDACC__)
template <class T>
SHARDREC_DEVICE T& shared() {
  static_assert(alignof(T) <= 16 && std::is_trivially_copyable_v<T>);
  extern __shared__ __align__(16) unsigned char memory[];
  return *reinterpret_cast<T*>(memory);
}
#else
template <class T>
T& shared(std::source_location where = std::source_location::current()) {
  static_assert(alignof(T) <= 16 && std::is_trivially_copyable_v<T>);
  if (sizeof(T) > simt::shared_bytes()) {
    simt::stop("a kernel uses more shared memory than its launch named", where);
  }
  return *static_cast<T*>(simt::shared_memory());
}
#endif

// A pointer into the memory of a device, or pinned memory. The compiler does not see that of one that was
// read from shared memory, and would make slower loads and stores.
template <class T>
SHARDREC_DEVICE T* global(T* pointer) {
#if defined(__CUDACC__)
  __builtin_assume(__isGlobal(pointer));
#endif
  return pointer;
}

// The same number, of which the compiler does not know that. What is computed of it is computed anew, and
// takes no registers from one use to the next.
SHARDREC_DEVICE int anew(int number) {
#if defined(__CUDACC__)
  asm volatile("" : "+r"(number));
#endif
  return number;
}

// Loads and stores of words that other blocks store and load at the same time: a word is seen as a whole, and says
// nothing about any other.
// load_from_host, store_to_host: one that the host stores or loads too, in pinned memory.
#if defined(__CUDACC__)
SHARDREC_DEVICE uint64_t load_relaxed(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
SHARDREC_DEVICE void store_relaxed(uint64_t* word, uint64_t value) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
SHARDREC_DEVICE uint64_t load_from_host(const uint64_t* word) {
  uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
SHARDREC_DEVICE void store_to_host(uint64_t* word, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
#else
SHARDREC_DEVICE uint64_t load_from_host(const uint64_t* word) { return simt::load_relaxed(word); }
SHARDREC_DEVICE void store_to_host(uint64_t* word, uint64_t value) {
  simt::store_relaxed(word, value);
}
SHARDREC_DEVICE uint64_t load_relaxed(const uint64_t* word) { return simt::load_relaxed(word); }
SHARDREC_DEVICE void store_relaxed(uint64_t* word, uint64_t value) {
  simt::store_relaxed(word, value);
}
#endif

// Blocks that have a thread for each of so many things.
constexpr int64_t blocks_for(int64_t things) { return (things + kThreads - 1) / kThreads; }

// Starts blocks of a kernel on the stream, on the current device.
template <class... Parameters>
cudaError_t launch(void (*kernel)(Parameters...), int64_t blocks, size_t shared_bytes,
                   cudaStream_t stream, std::type_identity_t<Parameters>... arguments) {
  if (blocks == 0) return cudaSuccess;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
#if defined(__CUDACC__)
  cudaLaunchConfig_t shape = {};
  shape.gridDim = dim3(static_cast<unsigned>(blocks));
  shape.blockDim = dim3(kThreads);
  shape.dynamicSmemBytes = shared_bytes;
  shape.stream = stream;
  return launched(cudaLaunchKernelEx(&shape, kernel, arguments...));
#else
  return launched(simt::launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                               shared_bytes, stream, arguments...));
#endif
}

// Loads a kernel onto the current device.
template <class... Parameters>
cudaError_t load(void (*kernel)(Parameters...)) {
  cudaFuncAttributes unused = {};
  return cudaFuncGetAttributes(&unused, reinterpret_cast<const void*>(kernel));
}

// The index of this thread's warp in the block, and of the thread in its warp.
SHARDREC_DEVICE int warp_index() { return static_cast<int>(threadIdx.x) / kWarp; }
SHARDREC_DEVICE int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }
// The same among those of all blocks.
SHARDREC_DEVICE int64_t grid_warp_index() { return int64_t{blockIdx.x} * kWarps + warp_index(); }
SHARDREC_DEVICE int64_t grid_thread_index() { return int64_t{blockIdx.x} * kThreads + threadIdx.x; }

// The sum of value over the lanes of the warp up to this one. All lanes call it.
template <class T>
SHARDREC_DEVICE T sum_of_lanes_up_to_this(T value) {
  for (int distance = 1; distance < kWarp; distance *= 2) {
    const T below = __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(distance));
    if (lane_index() >= distance) value += below;
  }
  return value;
}

// Of a list of `count` starts, ascending, the first of which is not above `number`: the last one that is
// not. starts[i] is one of them. All lanes of the warp call it with the same arguments, and get the same.
template <class Starts, class Count>
SHARDREC_DEVICE Count last_start(const Starts& starts, Count count, int64_t number) {
  Count first = 0;  // starts[first] <= number
  Count end = count;
  while (end - first > 1) {
    // Each lane looks at the start of one of 32 pieces.
    const Count piece = (end - first + kWarp - 1) / kWarp;
    const Count at = first + lane_index() * piece;
    const unsigned below = __ballot_sync(kAllLanes, at < end && starts[at] <= number);
    first += (__popc(below) - 1) * piece;
    end = first + piece < end ? first + piece : end;
  }
  return first;
}

}  // namespace shardrec::compute::cuda
