// Matrices of float32, float16 or bfloat16 for the C API, and the roundings of float32 to 16 bits,
// worked out in double arithmetic: shares no code with the library.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "shardrec/shardrec.h"

namespace shardrec::test {

// The value nearest to x, ties to even, with `bits` significant bits; below the smallest normal
// number 2^least, multiples of 2^(least - bits + 1). Not for numbers too large for the type.
inline double round_to(double x, int bits, int least) {
  if (x == 0) return x;
  int exponent = 0;
  std::frexp(x, &exponent);  // x = m * 2^exponent, m in [0.5, 1)
  const int unit = std::max(exponent - bits, least - bits + 1);
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}
inline float rounded(float x, shardrec_dtype dtype) {
  return dtype == SHARDREC_FLOAT16    ? static_cast<float>(round_to(x, 11, -14))
         : dtype == SHARDREC_BFLOAT16 ? static_cast<float>(round_to(x, 8, -126))
                                      : x;
}

class HalfMatrix {
 public:
  shardrec_tensor tensor{};

  HalfMatrix(shardrec_dtype dtype, int64_t rows, int64_t cols) : dtype_(dtype) {
    const auto size = static_cast<size_t>(rows * cols);
    void* data = nullptr;
    if (dtype == SHARDREC_FLOAT32) {
      floats_.assign(size, -1);
      data = floats_.data();
    } else {
      halves_.assign(size, 0xffff);
      data = halves_.data();
    }
    EXPECT_EQ(shardrec_tensor_matrix(data, dtype, rows, cols, &tensor), SHARDREC_OK);
  }
  // values: numbers that the type has.
  HalfMatrix(shardrec_dtype dtype, int64_t rows, int64_t cols, const std::vector<float>& values)
      : HalfMatrix(dtype, rows, cols) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (dtype == SHARDREC_FLOAT32) {
        floats_[i] = values[i];
      } else {
        halves_[i] = bits_of(values[i]);
      }
    }
  }
  HalfMatrix(const HalfMatrix&) = delete;
  HalfMatrix& operator=(const HalfMatrix&) = delete;

  // Not a number in every place.
  void spoil() {
    std::fill(floats_.begin(), floats_.end(), NAN);
    std::fill(halves_.begin(), halves_.end(), uint16_t{0xffff});
  }

  std::vector<float> floats() const {
    if (dtype_ == SHARDREC_FLOAT32) return floats_;
    std::vector<float> out;
    for (const uint16_t half : halves_) out.push_back(value_of(half));
    return out;
  }

 private:
  uint16_t bits_of(float x) const {
    if (dtype_ == SHARDREC_BFLOAT16) {
      uint32_t word = 0;
      std::memcpy(&word, &x, sizeof word);
      return static_cast<uint16_t>(word >> 16);
    }
    if (x == 0) return 0;
    int exponent = 0;
    const float m = std::frexp(std::abs(x), &exponent);  // normal numbers only
    return static_cast<uint16_t>((x < 0 ? 0x8000 : 0) + ((exponent + 14) << 10) +
                                 (static_cast<int>(std::ldexp(m, 11)) - 1024));
  }
  float value_of(uint16_t half) const {
    if (dtype_ == SHARDREC_BFLOAT16) {
      const uint32_t word = uint32_t{half} << 16;
      float x = 0;
      std::memcpy(&x, &word, sizeof x);
      return x;
    }
    const int exponent = half >> 10 & 31;
    const int mantissa = half & 1023;
    const double value = exponent == 0    ? std::ldexp(mantissa, -24)
                         : exponent == 31 ? (mantissa == 0 ? INFINITY : NAN)
                                          : std::ldexp(1024 + mantissa, exponent - 25);
    return static_cast<float>(half >> 15 != 0 ? -value : value);
  }

  shardrec_dtype dtype_;
  std::vector<float> floats_;
  std::vector<uint16_t> halves_;
};

}  // namespace shardrec::test
