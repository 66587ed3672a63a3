// The 16-bit types of element.h: constants of how a float becomes one of them. The functions are in
// halves-inl.h.
#pragma once

#include <cstdint>

namespace shardrec::compute::math {

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
  static constexpr uint32_t kLargest = 0x477FE000;        // 65504, as fp32
  static constexpr uint32_t kLeastOverflow = 0x477FF000;  // 65520, as fp32: rounds to infinity
};

struct Bfloat16 {
  static constexpr uint32_t kInfinity = 0x7F80;
  static constexpr uint32_t kNan = 0x7FC0;
};

}  // namespace shardrec::compute::math
