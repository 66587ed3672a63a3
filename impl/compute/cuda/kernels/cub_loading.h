// CUB's kernels have no names to load them by: its scans and sorts are loaded by being run once, on
// lists of zeros. On a stream of their own, as everything, so that nothing else is waited for.
#pragma once

#include "compute/cuda/kernels/cub.h"

namespace shardrec::compute::cuda {

// More than one block of CUB's takes: it has other kernels for what one does alone.
#if defined(__CUDACC__)
constexpr int64_t kItemsOfManyBlocks = int64_t{1} << 16;
#else
constexpr int64_t kItemsOfManyBlocks = 2;
#endif

// What a list, or room for work, takes of a piece of memory so that the next one is aligned too.
constexpr size_t aligned_bytes(size_t bytes) { return (bytes + 255) / 256 * 256; }

// Runs body(memory, stream) with `bytes` zeros on the current device, and waits for what it has enqueued.
template <class Body>
cudaError_t run_on_zeros(size_t bytes, Body body) {
  cudaStream_t stream = nullptr;
  cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) return error;
  const auto also = [&](cudaError_t next) {
    if (error == cudaSuccess) error = next;
  };
  unsigned char* memory = nullptr;
  error = cudaMallocAsync(&memory, bytes, stream);
  if (error == cudaSuccess) {
    error = cudaMemsetAsync(memory, 0, bytes, stream);
    if (error == cudaSuccess) error = body(memory, stream);
    also(cudaFreeAsync(memory, stream));
  }
  also(cudaStreamSynchronize(stream));
  also(cudaStreamDestroy(stream));
  return error;
}

// Loads what exclusive_sum of lists of T runs onto the current device.
template <class T>
cudaError_t load_exclusive_sum() {
  constexpr size_t kListBytes = aligned_bytes(kItemsOfManyBlocks * sizeof(T));
  size_t room = 0;
  const T* const none = nullptr;
  const cudaError_t error =
      exclusive_sum<T>(nullptr, room, none, nullptr, kItemsOfManyBlocks, nullptr);
  if (error != cudaSuccess) return error;
  return run_on_zeros(kListBytes + room, [&](unsigned char* memory, cudaStream_t stream) {
    T* const list = reinterpret_cast<T*>(memory);
    return exclusive_sum<T>(memory + kListBytes, room, list, list, kItemsOfManyBlocks, stream);
  });
}

// The same for sort_pairs.
template <class Key, class Value>
cudaError_t load_sort_pairs() {
  for (const int64_t count : {int64_t{1}, kItemsOfManyBlocks}) {
    const size_t key_bytes = aligned_bytes(static_cast<size_t>(count) * sizeof(Key));
    const size_t value_bytes = aligned_bytes(static_cast<size_t>(count) * sizeof(Value));
    const size_t list_bytes = 2 * (key_bytes + value_bytes);
    const auto sort = [&](void* room, size_t& bytes, Key* keys, Key* sorted_keys, Value* values,
                          Value* sorted_values, cudaStream_t stream) {
      return sort_pairs<Key, Value>(room, bytes, keys, sorted_keys, values, sorted_values, count, 0,
                                    static_cast<int>(8 * sizeof(Key)), stream);
    };
    size_t room = 0;
    cudaError_t error = sort(nullptr, room, nullptr, nullptr, nullptr, nullptr, nullptr);
    if (error == cudaSuccess) {
      error = run_on_zeros(list_bytes + room, [&](unsigned char* memory, cudaStream_t stream) {
        const auto keys = [&](size_t offset) { return reinterpret_cast<Key*>(memory + offset); };
        const auto values = [&](size_t offset) {
          return reinterpret_cast<Value*>(memory + 2 * key_bytes + offset);
        };
        return sort(memory + list_bytes, room, keys(0), keys(key_bytes), values(0),
                    values(value_bytes), stream);
      });
    }
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace shardrec::compute::cuda
