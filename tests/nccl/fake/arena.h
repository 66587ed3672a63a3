// A rank's arena: what it has sent lies there until all that it is for have read it. Each call gets the first gap that
// it fits in, so that no more pages are written than are needed at a time.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>

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

}  // namespace fake_nccl
