// Conversions between floats and 16-bit elements, of every set of kernels.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/jobs.h"

namespace shardrec::compute {
namespace {

constexpr Element kHalves[] = {Element::kFloat16, Element::kBfloat16};

std::vector<uint16_t> all_patterns() {
  std::vector<uint16_t> patterns;
  for (uint32_t p = 0; p < 65536; ++p) patterns.push_back(static_cast<uint16_t>(p));
  return patterns;
}

std::vector<float> widen(const Kernels& kernels, Element element,
                         const std::vector<uint16_t>& halves) {
  std::vector<float> out(halves.size());
  kernels.widen(halves.data(), element, out.data(), static_cast<int64_t>(halves.size()));
  return out;
}

std::vector<uint16_t> narrow(const Kernels& kernels, Element element,
                             const std::vector<float>& numbers) {
  std::vector<uint16_t> out(numbers.size());
  kernels.narrow(numbers.data(), element, out.data(), static_cast<int64_t>(numbers.size()));
  return out;
}

TEST(Widen, OfEveryPatternIsItsValue) {
  const std::vector<uint16_t> patterns = all_patterns();
  for (const Element element : kHalves) {
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      const std::vector<float> numbers = widen(cpu_kernels_at(set), element, patterns);
      for (size_t p = 0; p < numbers.size(); ++p) {
        ASSERT_TRUE(same_bits(numbers[p], static_cast<float>(half_value(element, patterns[p]))))
            << cpu_kernels_at(set).name << " " << name_of(element) << " " << p;
      }
    }
  }
}

TEST(Narrow, GivesEveryPatternBackAndOneNanForAll) {
  const std::vector<uint16_t> patterns = all_patterns();
  for (const Element element : kHalves) {
    std::vector<uint16_t> expected = patterns;
    for (uint16_t& pattern : expected) {
      if (std::isnan(half_value(element, pattern))) pattern = format_of(element).nan;
    }
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      const Kernels& kernels = cpu_kernels_at(set);
      EXPECT_EQ(narrow(kernels, element, widen(kernels, element, patterns)), expected)
          << kernels.name << " " << name_of(element);
    }
  }
}

// Between each two neighbours, infinity taken as what follows the largest number.
TEST(Narrow, RoundsToTheNearestAndHalfwayToTheEven) {
  for (const Element element : kHalves) {
    const HalfFormat format = format_of(element);
    std::vector<float> numbers;
    std::vector<uint16_t> expected;
    const auto add = [&](float x, uint32_t pattern) {
      numbers.push_back(x);
      expected.push_back(static_cast<uint16_t>(pattern));
      numbers.push_back(-x);
      expected.push_back(static_cast<uint16_t>(pattern | 0x8000));
    };
    for (uint32_t p = 0; p < format.infinity; ++p) {
      const auto middle =
          static_cast<float>((magnitude_value(format, p) + magnitude_value(format, p + 1)) / 2);
      add(std::nextafter(middle, 0.0F), p);
      add(middle, p % 2 == 0 ? p : p + 1);
      if (middle < std::numeric_limits<float>::max()) {
        add(std::nextafter(middle, std::numeric_limits<float>::infinity()), p + 1);
      }
    }
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      const std::vector<uint16_t> halves = narrow(cpu_kernels_at(set), element, numbers);
      for (size_t i = 0; i < numbers.size(); ++i) {
        ASSERT_EQ(halves[i], expected[i])
            << cpu_kernels_at(set).name << " " << name_of(element) << " " << numbers[i];
      }
    }
  }
}

TEST(Narrow, KnownNumbersHaveTheirKnownPatterns) {
  struct Case {
    float number;
    uint16_t fp16;
    uint16_t bf16;
  };
  const std::vector<Case> cases = {
      {1.0F, 0x3C00, 0x3F80},
      {-2.0F, 0xC000, 0xC000},
      {0.0F, 0x0000, 0x0000},
      {-0.0F, 0x8000, 0x8000},
      {1.0F + 0x1p-11F, 0x3C00, 0x3F80},
      {1.0F + 0x3p-11F, 0x3C02, 0x3F80},
      {1.0F + 0x1p-8F, 0x3C04, 0x3F80},
      {1.0F + 0x3p-8F, 0x3C0C, 0x3F82},
      {65504.0F, 0x7BFF, 0x4780},
      {65519.996F, 0x7BFF, 0x4780},
      {65520.0F, 0x7C00, 0x4780},
      {0x1p-24F, 0x0001, 0x3380},
      {0x1p-25F, 0x0000, 0x3300},
      {0x1.000002p-25F, 0x0001, 0x3300},
      {0x1p-149F, 0x0000, 0x0000},
      {0x1p-133F, 0x0000, 0x0001},
      {std::numeric_limits<float>::max(), 0x7C00, 0x7F80},
      {-std::numeric_limits<float>::infinity(), 0xFC00, 0xFF80},
      {std::numeric_limits<float>::quiet_NaN(), 0x7E00, 0x7FC0},
      {std::bit_cast<float>(0xFF800001), 0x7E00, 0x7FC0},
      {std::bit_cast<float>(0x7FFFFFFF), 0x7E00, 0x7FC0},
  };
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    for (const Case& test : cases) {
      const std::vector<float> many(19, test.number);
      EXPECT_EQ(narrow(cpu_kernels_at(set), Element::kFloat16, many),
                std::vector<uint16_t>(19, test.fp16))
          << cpu_kernels_at(set).name << " " << test.number;
      EXPECT_EQ(narrow(cpu_kernels_at(set), Element::kBfloat16, many),
                std::vector<uint16_t>(19, test.bf16))
          << cpu_kernels_at(set).name << " " << test.number;
    }
  }
}

TEST(Narrow, EverySetGivesTheSameHalvesForAnyFloat) {
  Random random(41);
  std::vector<float> numbers(1 << 18);
  for (float& x : numbers) x = std::bit_cast<float>(static_cast<uint32_t>(random()));
  for (const Element element : kHalves) {
    const std::vector<uint16_t> expected = narrow(scalar(), element, numbers);
    for (size_t i = 0; i < numbers.size(); i += 97) {
      ASSERT_EQ(expected[i], nearest_half(element, static_cast<double>(numbers[i])));
    }
    for (int set = 1; set < cpu_kernel_count(); ++set) {
      EXPECT_EQ(narrow(cpu_kernels_at(set), element, numbers), expected)
          << cpu_kernels_at(set).name << " " << name_of(element);
    }
  }
}

TEST(WidenAndNarrow, AreCopiesForFloatsOfAnyLength) {
  Random random(42);
  for (int64_t count = 0; count < 70; ++count) {
    const std::vector<float> numbers =
        numbers_of(random, static_cast<size_t>(count), Numbers::kSpecial);
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      std::vector<float> wide(numbers.size() + 1, 5.0F);
      std::vector<float> narrowed(numbers.size() + 1, 5.0F);
      std::vector<float> expected = numbers;
      expected.push_back(5.0F);
      cpu_kernels_at(set).widen(numbers.data(), Element::kFloat32, wide.data(), count);
      cpu_kernels_at(set).narrow(numbers.data(), Element::kFloat32, narrowed.data(), count);
      EXPECT_TRUE(same_bits(wide, expected));
      EXPECT_TRUE(same_bits(narrowed, expected));
    }
  }
}

}  // namespace
}  // namespace shardrec::compute
