#include "compute/prefetch.h"

#include <algorithm>

#include "compute/profile_cache.h"

namespace shardrec::compute {
namespace {

// Without a profile: enough rows to cover the latency, few enough to stay in a second-level cache.
PrefetchChoice default_choice(int64_t row_bytes) noexcept {
  constexpr int64_t kBytesAhead = 16 << 10;
  constexpr int64_t kMostRows = 32;
  return {.hint = PrefetchHint::kT1,
          .distance_rows = std::clamp(kBytesAhead / row_bytes, kLeastPrefetchDistance, kMostRows)};
}

}  // namespace

PrefetchChoice choose_prefetch(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                               int64_t bag_length) noexcept {
  row_bytes = std::max<int64_t>(row_bytes, 1);
  const RowRate* nearest = nearest_rate(profile, access, row_bytes, bag_length);
  if (nearest == nullptr) return default_choice(row_bytes);
  return {.hint = nearest->hint,
          .distance_rows = std::clamp(nearest->distance_rows * nearest->row_bytes / row_bytes,
                                      kLeastPrefetchDistance, kMostPrefetchDistance),
          .streaming_stores = nearest->streaming_stores};
}

PrefetchChoice prefetch_for(MemoryAccess access, int64_t row_bytes, int64_t bag_length) noexcept {
  return choose_prefetch(memory_profile(), access, row_bytes, bag_length);
}

}  // namespace shardrec::compute
