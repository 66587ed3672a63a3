// The area under the ROC curve as counts of pairs, exact in integers: a positive above a negative
// counts 2, a tie 1, over 2 * positives * negatives. Samples are packed into 32 bits so that
// numbers order them; ranges of predictions can be counted apart and added. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardrec::dense {

__extension__ typedef unsigned __int128 uint128_t;

// A prediction in 0 .. 1 and its label (compute/math/packed_sample.h).
using PackedSample = uint32_t;

// Ascending. spare: memory of the same size, exchanged with samples as often as need be.
void sort_samples(std::vector<PackedSample>& samples, std::vector<PackedSample>& spare);

struct PairCounts {
  int64_t positives = 0;
  int64_t negatives = 0;
  uint128_t doubled = 0;  // 2 * pairs in order + ties
};

PairCounts count_pairs(std::span<const PackedSample> sorted) noexcept;

// Counts of two ranges of which every prediction of `above` is greater than every one of `below`.
PairCounts add_ranges(const PairCounts& below, const PairCounts& above) noexcept;

// Requires positives and negatives.
double area(const PairCounts& counts) noexcept;

}  // namespace shardrec::dense
