// How kernels fetch rows ahead and store what they compute: from the machine's profile, or built-in
// defaults without one. It changes speed only, never a bit of a result.
//
// Thread rule: any thread. The first call in a process reads the profile's file; later ones take
// about a tenth of a microsecond: ask per task, not per row.
#pragma once

#include <cstdint>

#include "compute/memory_profile.h"

namespace shardrec::compute {

struct PrefetchChoice {
  PrefetchHint hint = PrefetchHint::kT1;
  int64_t distance_rows = kLeastPrefetchDistance;  // within kLeast.. and kMostPrefetchDistance
  // Outputs that are not read again soon are written past the caches; they must be aligned to the
  // vectors. Measured with outputs larger than the last cache: no gain for small ones.
  bool streaming_stores = false;

  bool operator==(const PrefetchChoice&) const = default;
};

// row_bytes >= 1. bag_length: mean number of rows per sum, at least 1; not looked at for updates.
PrefetchChoice prefetch_for(MemoryAccess access, int64_t row_bytes, int64_t bag_length) noexcept;

// From a given profile: the choice of its nearest row size and bag length with the most threads,
// with the distance kept in bytes.
PrefetchChoice choose_prefetch(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                               int64_t bag_length) noexcept;

}  // namespace shardrec::compute
