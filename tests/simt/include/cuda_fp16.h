// Stands in for CUDA's header of 16-bit floats (IEEE 754 binary16): conversions only.
#pragma once

#include <bit>
#include <cstdint>

#include "simt/language.h"

struct alignas(2) __half {
  unsigned short bits_of_half;  // CUDA's member is private
};
struct alignas(4) __half2 {
  __half x, y;
};

inline __half __ushort_as_half(unsigned short bits) noexcept { return {bits}; }
inline unsigned short __half_as_ushort(__half value) noexcept { return value.bits_of_half; }

inline float __half2float(__half value) noexcept {
  const uint32_t sign = (value.bits_of_half & 0x8000U) << 16;
  const uint32_t exponent = value.bits_of_half >> 10 & 31U;
  const uint32_t fraction = value.bits_of_half & 0x3FFU;
  if (exponent == 31) {  // infinity, or NaN with its payload
    return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  }
  if (exponent == 0) {  // zero, or a multiple of 2^-24
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  return std::bit_cast<float>(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

inline float2 __half22float2(__half2 value) noexcept {
  return {__half2float(value.x), __half2float(value.y)};
}

// To nearest, ties to even. Any NaN becomes the one that CUDA makes.
inline __half __float2half_rn(float value) noexcept {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return {0x7FFF};
  uint32_t half = 0x7C00;         // infinity
  if (magnitude < 0x38800000U) {  // below 2^-14: beside 0.5 the last place is 2^-24
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    half = std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5F);
  } else if (magnitude < 0x47800000U) {  // below 2^16; may round up to infinity
    const uint32_t odd = magnitude >> 13 & 1U;
    half = (magnitude - 0x38000000U + 0xFFFU + odd) >> 13;
  }
  return {static_cast<unsigned short>(sign | half)};
}
