#include "compute/probe/choice.h"

#include <algorithm>

#include "compute/profile/prefetch.h"

namespace shardrec::compute::probe {

std::vector<TimedPrefetch> kernel_ways(int64_t row_bytes) {
  using enum PrefetchHint;
  constexpr int64_t kKiB = 1 << 10;
  std::vector<TimedPrefetch> ways = {{.way = usual_prefetch(row_bytes)}};
  for (const auto& [hint, bytes] : {std::pair{kT0, 4 * kKiB},
                                    {kT0, 8 * kKiB},
                                    {kT0, 16 * kKiB},
                                    {kT1, 8 * kKiB},
                                    {kT1, 32 * kKiB}}) {
    const Prefetch way{.hint = hint, .distance_rows = rows_of_bytes(bytes, row_bytes)};
    const auto same = [&](const TimedPrefetch& other) { return other.way == way; };
    if (std::none_of(ways.begin(), ways.end(), same)) ways.push_back({.way = way});
  }
  return ways;
}

Prefetch choose_way(std::span<const TimedPrefetch> timed) {
  constexpr double kGain = 1.02;  // less is noise
  const auto slower = [](const TimedPrefetch& a, const TimedPrefetch& b) {
    return a.rate < b.rate;
  };
  const TimedPrefetch& best = *std::max_element(timed.begin(), timed.end(), slower);
  return best.rate > kGain * timed.front().rate ? best.way : timed.front().way;
}

}  // namespace shardrec::compute::probe
