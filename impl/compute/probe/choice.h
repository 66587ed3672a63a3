// Which prefetch the library's kernels shall use: ways to be timed, and the choice among them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compute/profile/memory_profile.h"

namespace shardrec::compute::probe {

struct TimedPrefetch {
  Prefetch way;
  double rate = 0;  // bytes per second, the best seen; 0: not timed
};

// The usual way first.
std::vector<TimedPrefetch> kernel_ways(int64_t row_bytes);

// The fastest one, where it is faster than the first by more than noise; else the first.
Prefetch choose_way(std::span<const TimedPrefetch> timed);

}  // namespace shardrec::compute::probe
