// Sizes and places at multiples of a number.
#pragma once

#include <cstddef>

namespace shardrec::core {

// The least multiple of `alignment` that is not below `bytes`.
constexpr size_t align_up(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace shardrec::core
