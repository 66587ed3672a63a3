#include "compute/prefetch.h"

#include "compute/profile_cache.h"

namespace shardrec::compute {

int64_t prefetch_distance(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                          int64_t bag_length) noexcept {
  row_bytes = std::max<int64_t>(row_bytes, 1);
  const RowRate* nearest = nearest_rate(profile, access, row_bytes, bag_length);
  if (nearest == nullptr) return usual_distance(row_bytes);
  return std::clamp(nearest->kernel_distance_rows * nearest->row_bytes / row_bytes,
                    kLeastPrefetchDistance, kMostPrefetchDistance);
}

int64_t prefetch_distance(MemoryAccess access, int64_t row_bytes, int64_t bag_length) noexcept {
  return prefetch_distance(memory_profile(), access, row_bytes, bag_length);
}

}  // namespace shardrec::compute
