// Atomic operations on integers, with the types that CUDA has them for: uint64_t, which is an
// unsigned long, is none of them there either. None on floats: their sums would depend on the order
// of threads.
//
// Relaxed, as CUDA's: they order nothing else.
#pragma once

#include <concepts>
#include <type_traits>

namespace simt {

template <class T>
concept Added =
    std::same_as<T, int> || std::same_as<T, unsigned> || std::same_as<T, unsigned long long>;
template <class T>
concept Compared = Added<T> || std::same_as<T, long long>;

// Stores what `combine` makes of the old value, which is returned.
template <class T, class Combine>
T update_atomically(T* at, Combine combine) noexcept {
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(at, &old, combine(old), false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED)) {
  }
  return old;
}

// What PTX has as ld.relaxed and st.relaxed.
template <class T>
T load_relaxed(const T* at) noexcept {
  return __atomic_load_n(at, __ATOMIC_RELAXED);
}
template <class T>
void store_relaxed(T* at, std::type_identity_t<T> value) noexcept {
  __atomic_store_n(at, value, __ATOMIC_RELAXED);
}

}  // namespace simt

// Keeps the compiler from moving loads and stores over it. There is nothing else to do: the blocks of a launch run one
// after the other, on one thread.
inline void __threadfence() noexcept { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

template <simt::Added T>
T atomicAdd(T* at, std::type_identity_t<T> value) noexcept {
  return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

template <simt::Compared T>
T atomicMin(T* at, std::type_identity_t<T> value) noexcept {
  return simt::update_atomically(at, [value](T old) { return value < old ? value : old; });
}

template <simt::Compared T>
T atomicMax(T* at, std::type_identity_t<T> value) noexcept {
  return simt::update_atomically(at, [value](T old) { return old < value ? value : old; });
}

template <simt::Added T>
T atomicOr(T* at, std::type_identity_t<T> value) noexcept {
  return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}

template <simt::Added T>
T atomicAnd(T* at, std::type_identity_t<T> value) noexcept {
  return __atomic_fetch_and(at, value, __ATOMIC_RELAXED);
}

template <simt::Added T>
T atomicExch(T* at, std::type_identity_t<T> value) noexcept {
  return __atomic_exchange_n(at, value, __ATOMIC_RELAXED);
}

template <simt::Added T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) noexcept {
  __atomic_compare_exchange_n(at, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
