// Floats rounded to fp16 for their way: as the kernels round, but finite ones stay finite.
#include "compute/math/saturation.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"

namespace shardrec::compute {
namespace {

TEST(Saturation, ChangesFiniteNumbersBeyondTheRangeOnlyAndCountsThem) {
  std::vector<float> numbers;
  // Patterns all over the range: all exponents, both signs, NaNs and infinities among them.
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 65'521) {
    numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (const float size : {65504.0F, 65519.996F, 65520.0F, 65536.0F, 3.4e38F, HUGE_VALF}) {
    numbers.push_back(size);
    numbers.push_back(-size);
  }
  const auto count = static_cast<int64_t>(numbers.size());
  int64_t beyond = 0;
  for (const float x : numbers) beyond += std::isfinite(x) && std::fabs(x) >= 65520 ? 1 : 0;
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    const Kernels& kernels = cpu_kernels_at(set);
    std::vector<uint16_t> plain(numbers.size()), saturated(numbers.size());
    kernels.narrow(numbers.data(), Element::kFloat16, plain.data(), count);
    EXPECT_EQ(math::narrow_saturating(kernels, numbers.data(), saturated.data(), count), beyond)
        << kernels.name;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const float x = numbers[i];
      const bool is_beyond = std::isfinite(x) && std::fabs(x) >= 65520;
      ASSERT_EQ(saturated[i], is_beyond ? (x < 0 ? 0xFBFF : 0x7BFF) : plain[i])
          << kernels.name << ": " << x;
    }
  }
}

}  // namespace
}  // namespace shardrec::compute
