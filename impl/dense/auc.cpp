#include "dense/auc.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace shardrec::dense {

void sort_samples(std::vector<PackedSample>& samples, std::vector<PackedSample>& spare) {
  constexpr size_t kFew = 2048;
  if (samples.size() < kFew) {
    std::sort(samples.begin(), samples.end());
    return;
  }
  constexpr uint32_t kBits = 8;
  std::array<size_t, size_t{1} << kBits> starts;
  spare.resize(samples.size());
  for (uint32_t shift = 0; shift < 32; shift += kBits) {
    const auto digit = [shift](PackedSample sample) {
      return sample >> shift & ((1U << kBits) - 1);
    };
    starts.fill(0);
    for (const PackedSample sample : samples) ++starts[digit(sample)];
    size_t before = 0;
    for (size_t& start : starts) {
      const size_t count = start;
      start = before;
      before += count;
    }
    for (const PackedSample sample : samples) spare[starts[digit(sample)]++] = sample;
    samples.swap(spare);
  }
}

PairCounts count_pairs(std::span<const PackedSample> sorted) noexcept {
  PairCounts counts;
  for (size_t i = 0; i < sorted.size();) {
    const PackedSample prediction = sorted[i] >> 1;
    PairCounts tied;
    for (; i < sorted.size() && sorted[i] >> 1 == prediction; ++i) {
      if ((sorted[i] & 1U) != 0) {
        ++tied.positives;
      } else {
        ++tied.negatives;
      }
    }
    tied.doubled = static_cast<uint128_t>(tied.positives) * static_cast<uint128_t>(tied.negatives);
    counts = add_ranges(counts, tied);
  }
  return counts;
}

PairCounts add_ranges(const PairCounts& below, const PairCounts& above) noexcept {
  PairCounts sum;
  sum.positives = below.positives + above.positives;
  sum.negatives = below.negatives + above.negatives;
  sum.doubled =
      below.doubled + above.doubled +
      2 * static_cast<uint128_t>(above.positives) * static_cast<uint128_t>(below.negatives);
  return sum;
}

double area(const PairCounts& counts) noexcept {
  const uint128_t pairs =
      2 * static_cast<uint128_t>(counts.positives) * static_cast<uint128_t>(counts.negatives);
  return static_cast<double>(counts.doubled) / static_cast<double>(pairs);
}

}  // namespace shardrec::dense
