#include "compute/non_finite.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace shardrec::compute {
namespace {

// least: the bits of the infinity, which those of every finite magnitude are below.
template <class Bits>
int64_t first_of(const void* list, std::make_signed_t<Bits> least, int64_t count) noexcept {
  using Magnitude = std::make_signed_t<Bits>;  // every instruction set has comparisons of these
  constexpr Magnitude kMagnitude = std::numeric_limits<Magnitude>::max();
  constexpr int64_t kBlock = 1024;
  const auto* const bits = static_cast<const Bits*>(list);
  const auto magnitude = [&](int64_t i) { return static_cast<Magnitude>(bits[i] & kMagnitude); };
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t end = std::min(at + kBlock, count);
    Magnitude most = 0;  // one comparison per block, so that the loop becomes vector instructions
    for (int64_t i = at; i < end; ++i) most = std::max(most, magnitude(i));
    if (most < least) continue;
    for (int64_t i = at; i < end; ++i) {
      if (magnitude(i) >= least) return i;
    }
  }
  return -1;
}

}  // namespace

int64_t first_non_finite(const void* list, shardrec_dtype dtype, int64_t count) noexcept {
  switch (dtype) {
    case SHARDREC_FLOAT16:
      return first_of<uint16_t>(list, 0x7C00, count);
    case SHARDREC_BFLOAT16:
      return first_of<uint16_t>(list, 0x7F80, count);
    case SHARDREC_FLOAT64:
      return first_of<uint64_t>(list, 0x7FF0000000000000, count);
    default:
      return first_of<uint32_t>(list, 0x7F800000, count);
  }
}

}  // namespace shardrec::compute
