// What tests compare and hash: numbers by their bits, all NaNs of a type as one.
#include "support/same_element.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "compute/half_reference.h"

namespace shardrec::compute {
namespace {

using shardrec::test::bits_with_one_nan;
using shardrec::test::same_element;
using shardrec::test::same_number;

TEST(OneNan, AllOf32And64BitsHaveTheSameBits) {
  const uint32_t one = bits_with_one_nan(std::numeric_limits<float>::quiet_NaN());
  for (const uint32_t pattern : {0x7FC00000U, 0xFFC00000U, 0x7FFFFFFFU, 0x7F800001U, 0xFF800001U}) {
    EXPECT_EQ(bits_with_one_nan(std::bit_cast<float>(pattern)), one) << pattern;
  }
  for (const uint32_t pattern : {0U, 0x80000000U, 1U, 0x7F800000U, 0xFF800000U, 0x3F800000U}) {
    EXPECT_EQ(bits_with_one_nan(std::bit_cast<float>(pattern)), pattern);
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(same_number(nan, -nan));
  EXPECT_FALSE(same_number(nan, std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(same_number(0.0, -0.0));
  EXPECT_FALSE(same_number(0.0F, -0.0F));
  EXPECT_TRUE(same_number(-1.5F, -1.5F));
}

TEST(OneNan, OfEveryPatternOf16Bits) {
  for (const Element element : {Element::kFloat16, Element::kBfloat16}) {
    for (uint32_t p = 0; p < 0x10000; ++p) {
      const auto pattern = static_cast<uint16_t>(p);
      const bool is_nan = std::isnan(half_value(element, pattern));
      const uint16_t expected = is_nan ? format_of(element).nan : pattern;
      ASSERT_EQ(bits_with_one_nan(element, pattern), expected) << p;
    }
  }
}

TEST(OneNan, ElementsInMemoryAreReadByTheirType) {
  const auto same = [](Element element, uint32_t a, uint32_t b) {
    return same_element(element, std::as_bytes(std::span(&a, 1)).data(),
                        std::as_bytes(std::span(&b, 1)).data());
  };
  EXPECT_TRUE(same(Element::kFloat32, 0x7FC00000, 0xFFC12345));
  EXPECT_FALSE(same(Element::kFloat32, 0x7FC00000, 0x7F800000));
  EXPECT_TRUE(same(Element::kFloat16, 0x7E00, 0xFC01));
  EXPECT_FALSE(same(Element::kBfloat16, 0x7E00, 0xFC01)) << "numbers of that type";
  EXPECT_TRUE(same(Element::kBfloat16, 0x7FC0, 0xFF81));
}

}  // namespace
}  // namespace shardrec::compute
