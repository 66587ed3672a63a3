#include "compute/profile/prefetch.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

namespace shardrec::compute {
namespace {

// Needs no memory, and is not destroyed at exit.
const MemoryProfile& no_profile() noexcept {
  alignas(MemoryProfile) static std::array<std::byte, sizeof(MemoryProfile)> room;
  static const MemoryProfile* const profile =
      std::construct_at(static_cast<MemoryProfile*>(static_cast<void*>(room.data())));
  return *profile;
}

std::atomic<const MemoryProfile*> in_use{nullptr};

}  // namespace

const MemoryProfile& profile_in_use() noexcept {
  const MemoryProfile* const profile = in_use.load(std::memory_order_acquire);
  return profile == nullptr ? no_profile() : *profile;
}

void use_profile(const MemoryProfile& profile) noexcept {
  in_use.store(&profile, std::memory_order_release);
}

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
  return prefetch_for(profile_in_use(), access, row_bytes, bag_length);
}

Prefetch prefetch_for_update(const MemoryProfile& profile, int64_t row_bytes,
                             int64_t bytes_apart) noexcept {
  if (bytes_apart < kFarApart) return usual_prefetch(std::max<int64_t>(row_bytes, 1));
  return prefetch_for(profile, MemoryAccess::kUpdate, row_bytes, 1);
}

Prefetch prefetch_for_update(int64_t row_bytes, int64_t bytes_apart) noexcept {
  return prefetch_for_update(profile_in_use(), row_bytes, bytes_apart);
}

}  // namespace shardrec::compute
