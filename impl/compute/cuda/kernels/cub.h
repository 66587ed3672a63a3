// Scans and sorts of whole lists, which CUB does on devices. In tests of kernels on the CPU, one thread
// does them in the order of the stream. All take room for their work: first asked for with null, they
// say how much.
#pragma once

#include "compute/cuda/kernels/device.h"

#if defined(__CUDACC__)
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/version.cuh>
#else
#include <algorithm>
#include <numeric>
#include <vector>
#endif

namespace shardrec::compute::cuda {

// CUB returns the last error of the thread, of whichever call: one that its caller has heard of (memory ran
// out) must not be found again. Those that break a device come back by themselves.
inline void forget_earlier_errors() { cudaGetLastError(); }

// Without room it has launched nothing.
inline cudaError_t launched_by_cub(const void* room, cudaError_t error) {
  return room == nullptr ? error : launched(error);
}

#if !defined(__CUDACC__)
template <class T>
void exclusive_sum_of_list(const T* in, T* out, int64_t count) {
  T sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T next = sum + in[i];
    out[i] = sum;
    sum = next;
  }
}

template <class Key, class Value>
void sort_list(const Key* keys, Key* sorted_keys, const Value* values, Value* sorted_values,
               int64_t count, int begin_bit, int end_bit) {
  const auto digits = [&](int64_t i) {
    const Key above = end_bit == 8 * sizeof(Key) ? Key{0} : static_cast<Key>(~Key{0} << end_bit);
    return static_cast<Key>((keys[i] & ~above) >> begin_bit);
  };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return digits(a) != digits(b) ? digits(a) < digits(b) : a < b;
  });
  for (int64_t i = 0; i < count; ++i) {
    sorted_keys[i] = keys[order[static_cast<size_t>(i)]];
    sorted_values[i] = values[order[static_cast<size_t>(i)]];
  }
}
#endif

// out[i] = in[0] + ... + in[i - 1]. In place too. room null: sets room_bytes, and does nothing.
template <class T>
cudaError_t exclusive_sum(void* room, size_t& room_bytes, const T* in, T* out, int64_t count,
                          cudaStream_t stream) {
  forget_earlier_errors();
#if defined(__CUDACC__)
#if CUB_VERSION < 200700
  if (count > INT32_MAX) return cudaErrorNotSupported;  // before CUDA 12.8 it counts in int
#endif
  return launched_by_cub(room,
                         cub::DeviceScan::ExclusiveSum(room, room_bytes, in, out, count, stream));
#else
  if (room == nullptr) {
    room_bytes = 1;
    return cudaSuccess;
  }
  simt::launch(exclusive_sum_of_list<T>, dim3(1), dim3(1), 0, stream, in, out, count);
  return launched_by_cub(room, cudaPeekAtLastError());
#endif
}

// Sorts pairs by bits [begin_bit, end_bit) of their unsigned keys, stably. Nothing overlaps.
template <class Key, class Value>
cudaError_t sort_pairs(void* room, size_t& room_bytes, const Key* keys, Key* sorted_keys,
                       const Value* values, Value* sorted_values, int64_t count, int begin_bit,
                       int end_bit, cudaStream_t stream) {
  forget_earlier_errors();
#if defined(__CUDACC__)
  return launched_by_cub(
      room, cub::DeviceRadixSort::SortPairs(room, room_bytes, keys, sorted_keys, values,
                                            sorted_values, count, begin_bit, end_bit, stream));
#else
  if (room == nullptr) {
    room_bytes = 1;
    return cudaSuccess;
  }
  simt::launch(sort_list<Key, Value>, dim3(1), dim3(1), 0, stream, keys, sorted_keys, values,
               sorted_values, count, begin_bit, end_bit);
  return launched_by_cub(room, cudaPeekAtLastError());
#endif
}

}  // namespace shardrec::compute::cuda
