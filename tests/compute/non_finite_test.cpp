// Where the first number that is not finite is found in a list.
#include "compute/non_finite.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace shardrec::compute {
namespace {

template <class Bits>
void expect_found(shardrec_dtype dtype, Bits infinity) {
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  for (const int64_t size : {1, 1023, 1024, 3000}) {
    std::vector<Bits> list(static_cast<size_t>(size),
                           static_cast<Bits>((infinity - 1) | kSign));  // the largest finite ones
    EXPECT_EQ(first_non_finite(list.data(), dtype, size), -1);
    for (const int64_t position : {int64_t{0}, size / 2, size - 1}) {
      for (const Bits bad : {infinity, static_cast<Bits>(infinity | kSign),
                             static_cast<Bits>(infinity + 1), static_cast<Bits>(~Bits{0})}) {
        std::vector<Bits> with = list;
        with[static_cast<size_t>(position)] = with.back() = bad;
        EXPECT_EQ(first_non_finite(with.data(), dtype, size), position);
      }
    }
  }
  EXPECT_EQ(first_non_finite(nullptr, dtype, 0), -1);
}

TEST(NonFinite, IsFoundInEveryDtype) {
  expect_found<uint32_t>(SHARDREC_FLOAT32, 0x7F800000);
  expect_found<uint16_t>(SHARDREC_FLOAT16, 0x7C00);
  expect_found<uint16_t>(SHARDREC_BFLOAT16, 0x7F80);
  expect_found<uint64_t>(SHARDREC_FLOAT64, 0x7FF0000000000000);
}

}  // namespace
}  // namespace shardrec::compute
