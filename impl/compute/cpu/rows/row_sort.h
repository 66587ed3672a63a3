// Occurrences of rows and their order: a stable radix sort of pieces that stay in the cache.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

namespace shardrec::compute::cpu {

// An occurrence: the row, counted from the first one of its part, and its bag.
template <class Row, bool kWeighted>
struct Occurrence {
  Row row = 0;
  uint32_t bag = 0;
};
template <class Row>
struct Occurrence<Row, true> {
  Row row = 0;
  uint32_t bag = 0;
  float weight = 0;
};

// How `bits` bits of a key are cut into digits.
struct Digits {
  int passes = 0;
  int bits = 0;
};

inline constexpr int kMostPasses = 8;
inline constexpr int kMostDigitBits = 10;

// The cheapest way for n entries: a pass visits every entry, and every value of its digit.
constexpr Digits digits_for(int64_t n, int bits) {
  Digits best;
  int64_t least = INT64_MAX;
  for (int passes = 1; passes <= kMostPasses && bits > 0; ++passes) {
    const int digit = (bits + passes - 1) / passes;
    if (digit > kMostDigitBits) continue;
    const int64_t cost = passes * (2 * n + (int64_t{1} << digit));
    if (cost >= least) continue;
    least = cost;
    best = {passes, digit};
  }
  return best;
}

// Sorts entries by the lowest `bits` bits of their rows, which differ in no other bit; equal ones
// keep their order. Works between `entries` and `other`, of one size; returns where the result is.
template <class Entry>
std::span<Entry> sort_occurrences(std::span<Entry> entries, std::span<Entry> other, int bits) {
  const Digits digits = digits_for(std::ssize(entries), bits);
  const size_t values = size_t{1} << digits.bits;
  const auto digit = [&](const Entry& entry, int pass) {
    return static_cast<size_t>(entry.row >> (pass * digits.bits)) & (values - 1);
  };
  // The counts of two digits are taken at once.
  std::array<uint32_t, size_t{2} << kMostDigitBits> places;
  for (int pass = 0; pass < digits.passes; ++pass) {
    uint32_t* place = places.data() + (pass % 2 == 0 ? 0 : values);
    if (pass % 2 == 0) {
      std::fill_n(place, 2 * values, 0U);
      if (pass + 1 < digits.passes) {
        for (size_t i = 0; i < entries.size(); ++i) {
          // Read in order, it is written out of order next.
          __builtin_prefetch(other.data() + i, 1);
          ++place[digit(entries[i], pass)];
          ++place[values + digit(entries[i], pass + 1)];
        }
      } else {
        for (const Entry& entry : entries) ++place[digit(entry, pass)];
      }
    }
    uint32_t total = 0;
    for (size_t v = 0; v < values; ++v) total += std::exchange(place[v], total);
    for (const Entry& entry : entries) other[place[digit(entry, pass)]++] = entry;
    std::swap(entries, other);
  }
  return entries;
}

}  // namespace shardrec::compute::cpu
