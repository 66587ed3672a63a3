// Random numbers by counter: each is a hash of (seed, counter), so that a sequence can be entered
// at any point and is the same on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "data/hash_number.h"

namespace shardrec::cli {

// In [0, 1), 53 bits.
inline double unit_real(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Box-Muller on the two halves of 64 bits.
inline double normal_real(uint64_t bits) {
  const double radius = (static_cast<double>(bits >> 32) + 0.5) * 0x1p-32;
  const double angle = static_cast<double>(bits & 0xffffffffu) * 0x1p-32;
  return std::sqrt(-2 * std::log(radius)) * std::cos(2 * std::numbers::pi * angle);
}

class CounterRandom {
 public:
  explicit CounterRandom(uint64_t seed) : seed_(seed) {}
  uint64_t next() { return hash_number(seed_, counter_++); }
  // In [0, bound). The bias, bound / 2^64, is of no account here.
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  uint64_t seed_;
  uint64_t counter_ = 0;
};

}  // namespace shardrec::cli
