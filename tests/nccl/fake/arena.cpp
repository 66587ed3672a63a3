#include "arena.h"

#include <algorithm>
#include <utility>

namespace fake_nccl {

bool Arena::reserve(size_t bytes, std::function<bool()> is_over, uint64_t& offset) {
  regions_.remove_if([](const Region& region) { return region.is_over(); });
  uint64_t gap = 0;
  const auto behind = std::find_if(regions_.begin(), regions_.end(), [&](const Region& region) {
    const bool fits = region.offset - gap >= bytes;
    if (!fits) gap = region.end;
    return fits;
  });
  if (bytes_ - gap < bytes) return false;
  offset = gap;
  regions_.insert(behind, {.offset = gap, .end = gap + bytes, .is_over = std::move(is_over)});
  return true;
}

}  // namespace fake_nccl
