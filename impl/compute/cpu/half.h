// Conversions of one number between fp32 and the 16-bit types: the definition that every set of
// kernels keeps (element.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "compute/element.h"

namespace shardrec::compute::cpu {

// Bits of fp32, without the sign where magnitudes are compared.
inline constexpr uint32_t kSign32 = 0x80000000;
inline constexpr uint32_t kInfinity32 = 0x7F800000;
inline constexpr uint32_t kNan32 = 0x7FC00000;

struct Float16 {
  static constexpr uint32_t kDropped = 13;              // fraction bits that fp32 has more
  static constexpr uint32_t kRebias = 0x38000000;       // exponents of fp32 less those of fp16
  static constexpr uint32_t kLeastNormal = 0x38800000;  // 2^-14, as fp32
  static constexpr uint32_t kTooLarge = 0x47800000;     // 2^16, as fp32
  static constexpr uint32_t kInfinity = 0x7C00;
  static constexpr uint32_t kNan = 0x7E00;

  static constexpr float widen(uint16_t half) noexcept {
    const uint32_t magnitude = half & 0x7FFFU;
    const uint32_t sign = (half & 0x8000U) << 16;
    uint32_t bits = (magnitude << kDropped) + kRebias;
    if (magnitude >= kInfinity) bits = kInfinity32 | magnitude << kDropped;
    if (magnitude < 0x400) {  // subnormal
      bits =
          std::bit_cast<uint32_t>(static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24F);
    }
    return std::bit_cast<float>(sign | bits);
  }

  // The magnitude of a number that is no NaN.
  static constexpr uint32_t nearest(uint32_t magnitude) noexcept {
    if (magnitude >= kTooLarge) return kInfinity;
    if (magnitude < kLeastNormal) {
      // Beside 0.5 the last place of a float is 2^-24, that of a subnormal half: the sum rounds.
      return std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
             std::bit_cast<uint32_t>(0.5F);
    }
    const uint32_t odd = magnitude >> kDropped & 1;
    return (magnitude - kRebias + 0xFFF + odd) >> kDropped;
  }

  // The same with the random word, where nearest is finite.
  static constexpr uint32_t stochastic(uint32_t magnitude, uint32_t word) noexcept {
    if (magnitude >= kLeastNormal) {
      return (magnitude - kRebias + (word >> (32 - kDropped))) >> kDropped;
    }
    const float units = std::bit_cast<float>(magnitude) * 0x1p24F;
    const auto below = static_cast<int32_t>(units);
    const float rest = units - static_cast<float>(below);
    const auto chance = static_cast<uint32_t>(static_cast<int32_t>(rest * 0x1p31F));
    return static_cast<uint32_t>(below) + ((chance + (word >> 1)) >> 31);
  }
};

struct Bfloat16 {
  static constexpr uint32_t kInfinity = 0x7F80;
  static constexpr uint32_t kNan = 0x7FC0;

  static constexpr float widen(uint16_t half) noexcept {
    return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
  }
  static constexpr uint32_t nearest(uint32_t magnitude) noexcept {
    return (magnitude + 0x7FFF + (magnitude >> 16 & 1)) >> 16;
  }
  static constexpr uint32_t stochastic(uint32_t magnitude, uint32_t word) noexcept {
    return (magnitude + (word >> 16)) >> 16;
  }
};

template <class Half>
constexpr uint16_t round_nearest(float x) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & ~kSign32;
  if (magnitude > kInfinity32) return Half::kNan;
  return static_cast<uint16_t>((bits & kSign32) >> 16 | Half::nearest(magnitude));
}

template <class Half>
constexpr uint16_t round_stochastic(float x, uint32_t word) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & ~kSign32;
  if (magnitude > kInfinity32) return Half::kNan;
  uint32_t half = Half::nearest(magnitude);
  if (half != Half::kInfinity) {
    half = std::min(Half::stochastic(magnitude, word), Half::kInfinity - 1);
  }
  return static_cast<uint16_t>((bits & kSign32) >> 16 | half);
}

}  // namespace shardrec::compute::cpu
