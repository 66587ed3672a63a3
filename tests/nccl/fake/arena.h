// A rank's arena: what it has sent lies there until all that it is for have read it. Each call gets the first gap that
// it fits in, so that no more pages are written than are needed at a time.
//
// Thread rule: one thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <utility>

namespace fake_nccl {

class Arena {
 public:
  explicit Arena(size_t bytes) : bytes_(bytes) {}

  // Room for so many bytes, until is_over says so; false: there is none yet.
  bool reserve(size_t bytes, std::function<bool()> is_over, uint64_t& offset);

 private:
  struct Region {
    uint64_t offset;
    uint64_t end;
    std::function<bool()> is_over;
  };

  const size_t bytes_;
  std::list<Region> regions_;  // ascending
};

inline bool Arena::reserve(size_t bytes, std::function<bool()> is_over, uint64_t& offset) {
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
