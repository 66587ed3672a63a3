// Elements of tables as they are compared and hashed: one_nan.h for the types of 16 bits, and for elements in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compute/element.h"
#include "support/one_nan.h"

namespace shardrec::test {

// Of a pattern of 16 bits, which stands for a number of that type.
inline uint16_t bits_with_one_nan(compute::Element half, uint16_t pattern) noexcept {
  const uint16_t infinity = half == compute::Element::kFloat16 ? 0x7C00 : 0x7F80;
  const uint16_t nan = half == compute::Element::kFloat16 ? 0x7E00 : 0x7FC0;
  return (pattern & 0x7FFF) > infinity ? nan : pattern;
}

// Of one element each, as it lies in memory.
inline bool same_element(compute::Element element, const std::byte* a, const std::byte* b) {
  if (element == compute::Element::kFloat32) {
    float numbers[2];
    std::memcpy(&numbers[0], a, sizeof(float));
    std::memcpy(&numbers[1], b, sizeof(float));
    return same_number(numbers[0], numbers[1]);
  }
  uint16_t halves[2];
  std::memcpy(&halves[0], a, sizeof(uint16_t));
  std::memcpy(&halves[1], b, sizeof(uint16_t));
  return bits_with_one_nan(element, halves[0]) == bits_with_one_nan(element, halves[1]);
}

}  // namespace shardrec::test
