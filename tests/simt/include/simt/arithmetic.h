// Arithmetic with one rounding each, operations on bits, and loads and stores with cache hints.
// Compile without contraction (-ffp-contract=off), as nvcc with -fmad=false.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <source_location>
#include <type_traits>

#include "simt/warp.h"

inline float __fadd_rn(float a, float b) noexcept { return a + b; }
inline float __fsub_rn(float a, float b) noexcept { return a - b; }
inline float __fmul_rn(float a, float b) noexcept { return a * b; }
inline float __fdiv_rn(float a, float b) noexcept { return a / b; }
inline float __fmaf_rn(float a, float b, float c) noexcept { return std::fma(a, b, c); }
inline float __fsqrt_rn(float a) noexcept { return std::sqrt(a); }

inline unsigned __umulhi(unsigned a, unsigned b) noexcept {
  return static_cast<unsigned>((uint64_t{a} * b) >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((static_cast<Wide>(a) * b) >> 64);
}
inline int __clz(int value) noexcept { return std::countl_zero(static_cast<unsigned>(value)); }
inline int __clzll(long long value) noexcept {
  return std::countl_zero(static_cast<unsigned long long>(value));
}
// One more than the place of the lowest bit that is set, 0 without any.
inline int __ffs(int value) noexcept { return __builtin_ffs(value); }
inline int __ffsll(long long value) noexcept { return __builtin_ffsll(value); }
inline int __popc(unsigned value) noexcept { return std::popcount(value); }
inline int __popcll(unsigned long long value) noexcept { return std::popcount(value); }
inline unsigned __brev(unsigned value) noexcept {
  unsigned reversed = 0;
  for (int bit = 0; bit < 32; ++bit) reversed |= (value >> bit & 1U) << (31 - bit);
  return reversed;
}

inline unsigned __float_as_uint(float value) noexcept { return std::bit_cast<unsigned>(value); }
inline float __uint_as_float(unsigned bits) noexcept { return std::bit_cast<float>(bits); }
inline int __float_as_int(float value) noexcept { return std::bit_cast<int>(value); }
inline float __int_as_float(int bits) noexcept { return std::bit_cast<float>(bits); }

namespace simt {

// What one instruction loads or stores.
template <class T>
concept Loaded =
    std::is_trivially_copyable_v<T> && std::has_single_bit(sizeof(T)) && sizeof(T) <= 16;

template <Loaded T>
void check_aligned(const T* at, const std::source_location& where) noexcept {
  if (reinterpret_cast<uintptr_t>(at) % sizeof(T) != 0) {
    stop("a load or store of 2, 4, 8 or 16 bytes at an address that is no multiple of them", where);
  }
}

template <Loaded T>
T load(const T* at, const std::source_location& where) noexcept {
  check_aligned(at, where);
  return *at;
}

template <Loaded T>
void store(T* at, const T& value, const std::source_location& where) noexcept {
  check_aligned(at, where);
  *at = value;
}

}  // namespace simt

template <simt::Loaded T>
T __ldg(const T* at, std::source_location where = std::source_location::current()) noexcept {
  return simt::load(at, where);
}
template <simt::Loaded T>
T __ldcs(const T* at, std::source_location where = std::source_location::current()) noexcept {
  return simt::load(at, where);
}
template <simt::Loaded T>
T __ldcg(const T* at, std::source_location where = std::source_location::current()) noexcept {
  return simt::load(at, where);
}
template <simt::Loaded T>
void __stcs(T* at, std::type_identity_t<T> value,
            std::source_location where = std::source_location::current()) noexcept {
  simt::store(at, value, where);
}
template <simt::Loaded T>
void __stcg(T* at, std::type_identity_t<T> value,
            std::source_location where = std::source_location::current()) noexcept {
  simt::store(at, value, where);
}
template <simt::Loaded T>
void __stwt(T* at, std::type_identity_t<T> value,
            std::source_location where = std::source_location::current()) noexcept {
  simt::store(at, value, where);
}
