#include "compute/prefetch.h"

#include "compute/profile_cache.h"

namespace shardrec::compute {

Prefetch prefetch_for(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                      int64_t bag_length) noexcept {
  row_bytes = std::max<int64_t>(row_bytes, 1);
  const RowRate* nearest = nearest_rate(profile, access, row_bytes, bag_length);
  if (nearest == nullptr) return usual_prefetch(row_bytes);
  return {.hint = nearest->kernel.hint,
          .distance_rows =
              rows_of_bytes(nearest->kernel.distance_rows * nearest->row_bytes, row_bytes)};
}

Prefetch prefetch_for(MemoryAccess access, int64_t row_bytes, int64_t bag_length) noexcept {
  return prefetch_for(memory_profile(), access, row_bytes, bag_length);
}

}  // namespace shardrec::compute
