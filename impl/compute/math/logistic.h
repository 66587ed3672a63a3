// The binary cross-entropy of a logit, and its exponential and logarithm, in double, on the host and on devices. They are
// additions, products and divisions alone, each of which rounds once, so that all have the same bits.
#pragma once

#include <bit>
#include <cstdint>

#include "compute/math/attributes.h"

namespace shardrec::compute::math {

// exp(x) for x <= 0, with an error below 1 unit in the last place; NaN for NaN. x = k log(2) + r with |r| <= log(2) / 2, exp(r) by its Taylor series.
SHARDREC_HOST_DEVICE inline double exp_of_negative(double x) noexcept {
  constexpr double kLeast = -746;  // exp() of less is 0
  constexpr double kLog2E = 0x1.71547652b82fep0;
  constexpr double kLn2High = 0x1.62e42feep-1;  // 32 bits: its product with k is exact
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr double kToInteger = 0x1.8p52;  // a sum with it has a unit of 1 in the last place
  if (x < kLeast) return 0;
  const double shifted = x * kLog2E + kToInteger;
  const double k = shifted - kToInteger;
  const double r = (x - k * kLn2High) - k * kLn2Low;
  double series = 1.0 / 6227020800;  // 1 / 13!
  series = series * r + 1.0 / 479001600;
  series = series * r + 1.0 / 39916800;
  series = series * r + 1.0 / 3628800;
  series = series * r + 1.0 / 362880;
  series = series * r + 1.0 / 40320;
  series = series * r + 1.0 / 5040;
  series = series * r + 1.0 / 720;
  series = series * r + 1.0 / 120;
  series = series * r + 1.0 / 24;
  series = series * r + 1.0 / 6;
  series = series * r + 1.0 / 2;
  const double power = 1 + (r + r * r * series);
  // 2^k in two factors: the first product is exact, and the second one rounds where the result is not normal.
  const auto exponent = static_cast<int64_t>(
      static_cast<int32_t>(static_cast<uint32_t>(std::bit_cast<uint64_t>(shifted))));
  const int64_t half = exponent >> 1;
  const auto two_to = [](int64_t n) {
    return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
  };
  return power * two_to(half) * two_to(exponent - half);
}

// log(1 + e) for e in 0 .. 1, with an error below 1 unit in the last place; NaN for NaN. log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + R)) with s = f / (2 + f), and R the
// series of 2 atanh(s) / s - 2; for e >= 1/2 it is log(2) + log(1 + f) with f = (e - 1) / 2, which is exact.
SHARDREC_HOST_DEVICE inline double log1p_of(double e) noexcept {
  constexpr double kLn2High = 0x1.62e42feep-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  const bool is_large = e >= 0.5;
  const double f = is_large ? (e - 1) * 0.5 : e;
  const double s = f / (2 + f);
  const double z = s * s;
  double series = 2.0 / 23;
  series = series * z + 2.0 / 21;
  series = series * z + 2.0 / 19;
  series = series * z + 2.0 / 17;
  series = series * z + 2.0 / 15;
  series = series * z + 2.0 / 13;
  series = series * z + 2.0 / 11;
  series = series * z + 2.0 / 9;
  series = series * z + 2.0 / 7;
  series = series * z + 2.0 / 5;
  series = series * z + 2.0 / 3;
  const double half_square = 0.5 * f * f;
  const double rest = s * (half_square + z * series);
  return is_large ? kLn2High - ((half_square - (rest + kLn2Low)) - f) : f - (half_square - rest);
}

// sigmoid(z) = 1 / (1 + exp(-z)), and max(z, 0) - z y + log(1 + exp(-|z|)), which is
// -y log(sigmoid(z)) - (1 - y) log(1 - sigmoid(z)); stable for any logit z.
struct CrossEntropy {
  double probability;
  double loss;
};
SHARDREC_HOST_DEVICE inline CrossEntropy cross_entropy_of(double z, double y) noexcept {
  const bool is_negative = z < 0;
  const double e = exp_of_negative(is_negative ? z : -z);
  const double above_zero = is_negative ? 0 : z;  // NaN for NaN
  return {.probability = (is_negative ? e : 1) / (1 + e), .loss = above_zero - z * y + log1p_of(e)};
}

}  // namespace shardrec::compute::math
