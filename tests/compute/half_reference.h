// The 16-bit types by their definition, in doubles: the value of each pattern, and the patterns
// around a number.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "compute/element.h"

namespace shardrec::compute {

struct HalfFormat {
  int fraction_bits;
  int least_exponent;  // of the least normal number
  uint16_t infinity;
  uint16_t nan;
};

inline HalfFormat format_of(Element element) {
  return element == Element::kFloat16 ? HalfFormat{10, -14, 0x7C00, 0x7E00}
                                      : HalfFormat{7, -126, 0x7F80, 0x7FC0};
}

// A magnitude pattern; infinity's is what would follow the largest number.
inline double magnitude_value(const HalfFormat& format, uint32_t pattern) {
  const int exponent = static_cast<int>(pattern >> format.fraction_bits);
  const int fraction = static_cast<int>(pattern & ((1U << format.fraction_bits) - 1));
  const int unit = format.least_exponent - format.fraction_bits;
  if (exponent == 0) return std::ldexp(fraction, unit);
  return std::ldexp((1 << format.fraction_bits) + fraction, unit + exponent - 1);
}

inline double half_value(Element element, uint16_t half) {
  const HalfFormat format = format_of(element);
  const auto pattern = static_cast<uint16_t>(half & 0x7FFF);
  const double sign = (half & 0x8000) != 0 ? -1.0 : 1.0;
  if (pattern > format.infinity) return std::numeric_limits<double>::quiet_NaN();
  if (pattern == format.infinity) return sign * std::numeric_limits<double>::infinity();
  return sign * magnitude_value(format, pattern);
}

// The pattern of the largest number whose magnitude is not above the finite |x|.
inline uint16_t magnitude_below(Element element, double x) {
  const HalfFormat format = format_of(element);
  uint32_t low = 0;
  uint32_t high = format.infinity;  // too large, or infinity itself
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    (magnitude_value(format, middle) <= std::fabs(x) ? low : high) = middle;
  }
  return static_cast<uint16_t>(low);
}

inline uint16_t nearest_half(Element element, double x) {
  const HalfFormat format = format_of(element);
  if (std::isnan(x)) return format.nan;
  const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isinf(x)) return sign | format.infinity;
  const uint16_t below = magnitude_below(element, x);
  const double down = std::fabs(x) - magnitude_value(format, below);
  const double up = magnitude_value(format, below + 1U) - std::fabs(x);
  const bool above = up < down || (up == down && below % 2 == 1);
  return static_cast<uint16_t>(sign | (below + (above ? 1 : 0)));
}

}  // namespace shardrec::compute
