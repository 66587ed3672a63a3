// How far ahead kernels fetch rows, to the second-level cache: as the machine's profile says, or as
// usual without one. It changes speed only, never a bit of a result.
//
// Thread rule: any thread. The first call in a process reads the profile's file; later ones take
// about a tenth of a microsecond: ask per task, not per row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compute/memory_profile.h"

namespace shardrec::compute {

// In rows. Without a profile: enough to cover the latency, few enough to stay in that cache.
constexpr int64_t usual_distance(int64_t row_bytes) noexcept {
  constexpr int64_t kBytesAhead = 16 << 10;
  return std::clamp(kBytesAhead / row_bytes, kLeastPrefetchDistance, kMostPrefetchDistance);
}

// row_bytes >= 1. bag_length: mean number of rows per sum, at least 1; not looked at for updates.
int64_t prefetch_distance(MemoryAccess access, int64_t row_bytes, int64_t bag_length) noexcept;

// From a given profile: that of its nearest row size and bag length with the most threads, kept in
// bytes.
int64_t prefetch_distance(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                          int64_t bag_length) noexcept;

}  // namespace shardrec::compute
