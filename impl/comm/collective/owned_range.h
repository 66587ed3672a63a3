// Which elements of a vector each rank adds up in a reduce-scatter, and sends in the all-gather
// after it. Ranges are in rank order, tile the vector, and follow from the sizes alone, so that
// ranks need not tell each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace shardrec::comm {

struct OwnedRange {
  int64_t begin = 0;  // elements
  int64_t count = 0;
};

// The range of `rank`. All begin at multiples of grain or at the end of the vector; the first ones
// are equally long, the last ones may be shorter or empty. Needs ranks > 0, grain > 0, count >= 0.
constexpr OwnedRange owned_range(int64_t count, int64_t ranks, int64_t grain,
                                 int64_t rank) noexcept {
  const int64_t each = (count + ranks * grain - 1) / (ranks * grain) * grain;
  const int64_t begin = std::min(rank * each, count);
  return {.begin = begin, .count = std::min(each, count - begin)};
}

// The ranges of all ranks.
struct OwnedRanges {
  int64_t count = 0;  // elements of the vector
  int64_t ranks = 1;
  int64_t grain = 1;
  constexpr OwnedRange of(int64_t rank) const noexcept {
    return owned_range(count, ranks, grain, rank);
  }
};

// The grain with which ranges of elements of so many bytes begin at cache lines of the vector.
constexpr int64_t line_grain(size_t element_size) noexcept {
  return static_cast<int64_t>(size_t{64} / element_size);
}

}  // namespace shardrec::comm
