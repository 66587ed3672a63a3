#include "compute/math/saturation.h"

#include <algorithm>
#include <array>

#include "compute/math/scalar.h"

namespace shardrec::compute::math {

int64_t narrow_saturating(const Kernels& kernels, const float* in, uint16_t* out,
                          int64_t count) noexcept {
  constexpr int64_t kBlock = 1024;  // floats: they stay in the first-level cache
  std::array<float, kBlock> within;
  int64_t saturated = 0;
  for (int64_t at = 0; at < count; at += kBlock) {
    const int64_t some = std::min(kBlock, count - at);
    int32_t most = 0;  // signed: every instruction set has comparisons of these
    for (int64_t i = at; i < at + some; ++i) {
      most = std::max(most, static_cast<int32_t>(magnitude_of(in[i])));
    }
    const float* from = in + at;
    if (most >= static_cast<int32_t>(Float16::kLeastOverflow)) {
      for (int64_t i = 0; i < some; ++i) {
        const float x = in[at + i];
        const float y = within_float16(x);
        within[static_cast<size_t>(i)] = y;
        saturated += op::bits(x) != op::bits(y) ? 1 : 0;
      }
      from = within.data();
    }
    kernels.narrow(from, Element::kFloat16, out + at, some);
  }
  return saturated;
}

}  // namespace shardrec::compute::math
