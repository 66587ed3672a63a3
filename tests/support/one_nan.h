// The bits of numbers as they are compared and hashed. A NaN is a NaN: bits are promised of numbers, not of the sign
// or payload of NaNs, which differ from processor to processor. All NaNs of a type therefore have the same bits here.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace shardrec::test {

inline uint32_t bits_with_one_nan(float value) noexcept {
  return std::bit_cast<uint32_t>(std::isnan(value) ? std::numeric_limits<float>::quiet_NaN()
                                                   : value);
}

inline uint64_t bits_with_one_nan(double value) noexcept {
  return std::bit_cast<uint64_t>(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN()
                                                   : value);
}

template <class Integer>
  requires std::is_integral_v<Integer>
Integer bits_with_one_nan(Integer value) noexcept {
  return value;
}

template <class Number>
bool same_number(Number a, Number b) noexcept {
  return bits_with_one_nan(a) == bits_with_one_nan(b);
}

template <class Number>
bool same_numbers(const Number* a, const Number* b, size_t count) noexcept {
  return std::equal(a, a + count, b, same_number<Number>);
}

}  // namespace shardrec::test
