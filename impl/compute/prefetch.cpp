#include "compute/prefetch.h"

#include <algorithm>
#include <tuple>

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

double ratio(int64_t a, int64_t b) noexcept {
  return static_cast<double>(std::max(a, b)) /
         static_cast<double>(std::max<int64_t>(1, std::min(a, b)));
}

}  // namespace

PrefetchChoice choose_prefetch(const MemoryProfile& profile, MemoryAccess access, int64_t row_bytes,
                               int64_t bag_length) noexcept {
  row_bytes = std::max<int64_t>(row_bytes, 1);
  const auto farness = [&](const RowRate& rate) {
    const double bags = access == MemoryAccess::kGather ? ratio(rate.bag_length, bag_length) : 1;
    return std::tuple(-rate.threads, bags, ratio(rate.row_bytes, row_bytes));
  };
  const RowRate* nearest = nullptr;
  for (const RowRate& rate : profile.rows) {
    if (rate.access != access) continue;
    if (nearest == nullptr || farness(rate) < farness(*nearest)) nearest = &rate;
  }
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
