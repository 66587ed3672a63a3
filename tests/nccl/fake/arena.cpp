#include "arena.h"

#include <utility>

namespace fake_nccl {

bool Arena::reserve(size_t bytes, std::function<bool()> is_over, uint64_t& offset) {
  while (!regions_.empty() && regions_.front().is_over()) regions_.pop_front();
  if (regions_.empty()) {
    offset = 0;
  } else {
    const uint64_t oldest = regions_.front().offset;
    offset = regions_.back().end;
    const bool wrapped = offset <= oldest;
    if (!wrapped && bytes > bytes_ - offset) offset = 0;
    if (offset <= oldest && bytes > oldest - offset) return false;
  }
  if (bytes > bytes_ - offset) return false;
  regions_.push_back({.offset = offset, .end = offset + bytes, .is_over = std::move(is_over)});
  return true;
}

}  // namespace fake_nccl
