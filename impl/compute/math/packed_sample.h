// A prediction in 0 .. 1 and its label in 32 bits: the bits of the float, which order as the number does, and the label
// below them.
#pragma once

#include <bit>
#include <cstdint>

#include "compute/math/attributes.h"

namespace shardrec::compute::math {

SHARDREC_HOST_DEVICE inline uint32_t packed_sample(float probability, bool positive) noexcept {
  return std::bit_cast<uint32_t>(probability + 0.0F) << 1 | (positive ? 1U : 0U);  // -0 is 0
}
SHARDREC_HOST_DEVICE inline float probability_of_packed(uint32_t sample) noexcept {
  return std::bit_cast<float>(sample >> 1);
}
SHARDREC_HOST_DEVICE inline bool is_positive_sample(uint32_t sample) noexcept {
  return (sample & 1U) != 0;
}

}  // namespace shardrec::compute::math
