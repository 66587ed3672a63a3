#include "compute/probe/prefetch.h"

#include "compute/probe/profile_cache.h"

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

Prefetch prefetch_for_update(const MemoryProfile& profile, int64_t row_bytes,
                             int64_t bytes_apart) noexcept {
  if (bytes_apart < kFarApart) return usual_prefetch(std::max<int64_t>(row_bytes, 1));
  return prefetch_for(profile, MemoryAccess::kUpdate, row_bytes, 1);
}

Prefetch prefetch_for_update(int64_t row_bytes, int64_t bytes_apart) noexcept {
  return prefetch_for_update(memory_profile(), row_bytes, bytes_apart);
}

}  // namespace shardrec::compute
