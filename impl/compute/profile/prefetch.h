// How kernels fetch rows ahead of their use: as the profile in use says, or as usual without one, to the
// second-level cache. It changes speed only, never a bit of a result.
//
// Thread rule: any thread. A call takes about a tenth of a microsecond: ask per task, not per row.
#pragma once

#include <algorithm>
#include <cstdint>

#include "compute/profile/memory_profile.h"

namespace shardrec::compute {

// The profile that kernels go by: one without rows until another is set, which lives until the process ends.
// memory_profile() (probe/profile_cache.h) sets that of this machine.
const MemoryProfile& profile_in_use() noexcept;
void use_profile(const MemoryProfile& profile) noexcept;

// In rows: so many bytes, within what kernels take.
constexpr int64_t rows_of_bytes(int64_t bytes, int64_t row_bytes) noexcept {
  return std::clamp(bytes / row_bytes, kLeastPrefetchDistance, kMostPrefetchDistance);
}

// Without a profile: enough to cover the latency, few enough to stay in the second-level cache.
constexpr Prefetch usual_prefetch(int64_t row_bytes) noexcept {
  constexpr int64_t kBytesAhead = 16 << 10;
  return {.hint = PrefetchHint::kT1, .distance_rows = rows_of_bytes(kBytesAhead, row_bytes)};
}

// row_bytes >= 1. bag_length: mean number of rows per sum, at least 1; not looked at for updates.
Prefetch prefetch_for(MemoryAccess access, int64_t row_bytes, int64_t bag_length) noexcept;

// Of rows to be updated, in ascending order, one every bytes_apart on average. A profile is of rows
// far apart; those that are close the processor foresees itself, but not into the first level (on
// Zen 5, T0 takes up to 1.8 times as long): they are prefetched as usual.
inline constexpr int64_t kFarApart = 2048;  // bytes
Prefetch prefetch_for_update(int64_t row_bytes, int64_t bytes_apart) noexcept;
Prefetch prefetch_for_update(const MemoryProfile& profile, int64_t row_bytes,
                             int64_t bytes_apart) noexcept;

// From a given profile: that of its nearest row size and bag length with the most threads, kept in
// bytes.
Prefetch prefetch_for(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                      int64_t bag_length) noexcept;

}  // namespace shardrec::compute
