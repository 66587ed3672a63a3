// Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (2011): a random function of a counter and a key. No state, so any thread or rank computes any
// element. The function is philox() of scalar.h, its text philox-inl.h.
#pragma once

#include <array>
#include <cstdint>

namespace shardrec::compute::math {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

constexpr PhiloxKey philox_key(uint64_t key) noexcept {
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

inline constexpr uint32_t kPhiloxMultiplier0 = 0xD2511F53;
inline constexpr uint32_t kPhiloxMultiplier1 = 0xCD9E8D57;
inline constexpr int kPhiloxRounds = 10;

constexpr PhiloxKey next_philox_key(PhiloxKey key) noexcept {
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  return {key[0] + kWeyl0, key[1] + kWeyl1};
}

}  // namespace shardrec::compute::math
