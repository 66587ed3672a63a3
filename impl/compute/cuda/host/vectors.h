// Which rows kernels may read and write in vectors of 16 bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "compute/element.h"

namespace shardrec::compute::cuda::host {

inline constexpr size_t kVectorBytes = 16;

// Do rows begin at multiples of so many bytes, and end there? stride: elements.
inline bool in_vectors(const void* address, size_t stride, int64_t width, Element element,
                       size_t bytes = kVectorBytes) {
  const size_t row = static_cast<size_t>(width) * element_bytes(element);
  return (std::bit_cast<uintptr_t>(address) | stride * element_bytes(element) | row) % bytes == 0;
}

// Threads that move a row together, each so many of its columns at once: a power of two.
inline int32_t lanes_for(int64_t width, int64_t columns) {
  constexpr size_t kLeast = 4;
  const auto loads = static_cast<size_t>((width + columns - 1) / columns);
  return static_cast<int32_t>(std::clamp(std::bit_ceil(loads), kLeast, size_t{32}));
}

}  // namespace shardrec::compute::cuda::host
