// Numbers of 16 bits, rounded to the nearest, ties to even.
#pragma once

#include <bit>
#include <cstdint>

namespace simt {

__extension__ typedef _Float16 Half;

struct Bfloat {
  uint16_t bits;

  Bfloat() = default;
  explicit Bfloat(float value) {
    const auto wide = std::bit_cast<uint32_t>(value);
    const uint32_t round = 0x7FFF + ((wide >> 16) & 1);
    bits = static_cast<uint16_t>(value != value ? 0x7FC0 : (wide + round) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

}  // namespace simt
