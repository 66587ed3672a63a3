// A rank's arena: a ring of what it has sent, given back when all that it is for have read it.
//
// Thread rule: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

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
  std::deque<Region> regions_;  // the oldest first
};

}  // namespace fake_nccl
