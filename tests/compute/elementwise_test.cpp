// Element-wise kernels of every set.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/jobs.h"
#include "compute/kernels.h"

namespace shardrec::compute {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// IEEE division of floats is the double quotient rounded once more (53 >= 2 * 24 + 2 bits).
float quotient(float x, float y) {
  return static_cast<float>(static_cast<double>(x) / static_cast<double>(y));
}

float scaled(const ScaleGradient& scale, float x) {
  float value = quotient(x, scale.divisor);
  if (scale.max_gradient != 0 && value > scale.max_gradient) value = scale.max_gradient;
  if (scale.max_gradient != 0 && value < -scale.max_gradient) value = -scale.max_gradient;
  return quotient(value, scale.length);
}

TEST(NarrowIds, AreCopiedAndCheckedAgainstTheRows) {
  Random random(12);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> strays = {
      -1, -5, -kMost - 1, kMost, int64_t{1} << 32, int64_t{1} << 40};
  for (const int64_t rows : {int64_t{1}, int64_t{7}, int64_t{1000}, int64_t{1} << 31}) {
    for (int64_t count = 0; count <= 40; ++count) {
      std::vector<int64_t> ids(static_cast<size_t>(count));
      for (int64_t& id : ids)
        id = uniform(random, 0, 3) == 0 ? rows - 1 : uniform(random, 0, rows - 1);
      const std::vector<int32_t> expected(ids.begin(), ids.end());
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        const Kernels& kernels = cpu_kernels_at(set);
        std::vector<int32_t> out(static_cast<size_t>(count) + 1, -9);
        ASSERT_TRUE(kernels.narrow_ids(ids.data(), rows, out.data(), count)) << kernels.name;
        ASSERT_EQ(out.back(), -9) << kernels.name;
        out.pop_back();
        ASSERT_EQ(out, expected) << kernels.name;
        for (int64_t i = 0; i < count; ++i) {
          std::vector<int64_t> bad = ids;
          const auto choice = static_cast<size_t>(uniform(random, 0, std::ssize(strays)));
          bad[static_cast<size_t>(i)] = choice < strays.size() ? strays[choice] : rows;
          out.resize(static_cast<size_t>(count));
          ASSERT_FALSE(kernels.narrow_ids(bad.data(), rows, out.data(), count))
              << kernels.name << " id " << bad[static_cast<size_t>(i)] << " of " << rows << " rows";
        }
      }
    }
  }
}

TEST(ScaleGradient, DividesThenClampsThenDividesByTheLengthExactly) {
  Random random(11);
  for (int64_t columns = 0; columns <= 130; ++columns) {
    for (const float divisor :
         {1.0F, 2.0F, 3.0F, 8.0F, 0x1p-126F, 0x1p126F, 0x1p127F, 1e-40F, 0.7F}) {
      for (const float most : {0.0F, 0.25F, 1e30F}) {
        for (const float length : {1.0F, 4.0F, 7.0F}) {
          const ScaleGradient scale{.divisor = divisor, .max_gradient = most, .length = length};
          const std::vector<float> gradient =
              numbers_of(random, static_cast<size_t>(columns), Numbers::kSpecial);
          std::vector<float> expected(gradient.size() + 1, 5.0F);
          for (size_t c = 0; c < gradient.size(); ++c) expected[c] = scaled(scale, gradient[c]);
          for (int set = 0; set < cpu_kernel_count(); ++set) {
            std::vector<float> out(gradient.size() + 1, 5.0F);
            cpu_kernels_at(set).scale_gradient(scale, gradient.data(), out.data(), columns);
            ASSERT_TRUE(same_bits(out, expected))
                << cpu_kernels_at(set).name << " " << columns << " columns, " << divisor << ", "
                << most << ", " << length;
          }
        }
      }
    }
  }
}

TEST(ScaleGradient, OfSixteenBitsIsThatOfTheSameFloats) {
  Random random(14);
  for (const Element element : {Element::kFloat16, Element::kBfloat16}) {
    for (int64_t columns = 0; columns <= 130; ++columns) {
      const Elements gradient(element,
                              numbers_of(random, static_cast<size_t>(columns), Numbers::kSpecial));
      ScaleGradient scale{.divisor = uniform(random, 0, 1) == 0 ? 4.0F : 3.0F,
                          .max_gradient = uniform(random, 0, 1) == 0 ? 0.0F : 0.25F,
                          .length = uniform(random, 0, 1) == 0 ? 1.0F : 7.0F,
                          .element = element};
      std::vector<float> expected(gradient.size() + 1, 5.0F);
      for (size_t c = 0; c < gradient.size(); ++c) expected[c] = scaled(scale, gradient.at(c));
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        std::vector<float> out(gradient.size() + 1, 5.0F);
        cpu_kernels_at(set).scale_gradient(scale, gradient.data(), out.data(), columns);
        ASSERT_TRUE(same_bits(out, expected)) << cpu_kernels_at(set).name << " " << columns;
      }
    }
  }
}

TEST(ScaleGradient, ClampCapsInfinitiesAndKeepsNan) {
  const std::vector<float> gradient = {kInfinity, -kInfinity, kNan, 0.5F, -0.0F, 9.0F, -9.0F};
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    std::vector<float> out(gradient.size());
    cpu_kernels_at(set).scale_gradient({.divisor = 1, .max_gradient = 2, .length = 1},
                                       gradient.data(), out.data(), 7);
    EXPECT_TRUE(same_bits(out, {2.0F, -2.0F, kNan, 0.5F, -0.0F, 2.0F, -2.0F}))
        << cpu_kernels_at(set).name;
  }
}

TEST(ScaleGradient, MayWorkInPlace) {
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    std::vector<float> x(37);
    for (size_t c = 0; c < x.size(); ++c) x[c] = static_cast<float>(c);
    cpu_kernels_at(set).scale_gradient({.divisor = 4, .max_gradient = 5, .length = 2}, x.data(),
                                       x.data(), 37);
    for (size_t c = 0; c < x.size(); ++c)
      EXPECT_EQ(x[c], std::min(static_cast<float>(c) / 4, 5.0F) / 2);
  }
}

TEST(Add, AddsEveryColumnOnceAndNoMore) {
  Random random(12);
  for (int64_t columns = 0; columns <= 130; ++columns) {
    const std::vector<float> x =
        numbers_of(random, static_cast<size_t>(columns), Numbers::kSpecial);
    const std::vector<float> start =
        numbers_of(random, static_cast<size_t>(columns) + 1, Numbers::kSpecial);
    std::vector<float> expected = start;
    for (size_t c = 0; c < x.size(); ++c) {
      expected[c] = static_cast<float>(static_cast<double>(start[c]) + static_cast<double>(x[c]));
    }
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      std::vector<float> sum = start;
      cpu_kernels_at(set).add(x.data(), sum.data(), columns);
      ASSERT_TRUE(same_bits(sum, expected)) << cpu_kernels_at(set).name << " " << columns;
    }
  }
}

TEST(Dot, IsTheSixteenLaneSumOfProducts) {
  Random random(17);
  for (const Element element : kElements) {
    for (int64_t columns = 0; columns <= 130; ++columns) {
      const auto count = static_cast<size_t>(columns);
      const Numbers numbers = columns % 3 == 0 ? Numbers::kSpecial : Numbers::kOrdinary;
      const Elements row(element, numbers_of(random, count, numbers));
      const std::vector<float> y = numbers_of(random, count, numbers);
      std::array<float, 16> lanes{};
      for (size_t c = 0; c < count; ++c) lanes[c % 16] = std::fma(row.at(c), y[c], lanes[c % 16]);
      for (const size_t half : {8U, 4U, 2U, 1U}) {
        for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
      }
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        ASSERT_TRUE(
            same_bits(cpu_kernels_at(set).dot(row.data(), element, y.data(), columns), lanes[0]))
            << cpu_kernels_at(set).name << " " << name_of(element) << " " << columns;
      }
    }
  }
}

TEST(Divide, IsCorrectlyRoundedForEveryDivisor) {
  Random random(13);
  for (int64_t columns = 0; columns <= 130; ++columns) {
    for (const float divisor :
         {1.0F, 5.0F, -4.0F, 0x1p-126F, 0x1p-149F, 0x1p127F, 0.0F, kInfinity, 3e-39F}) {
      const std::vector<float> start =
          numbers_of(random, static_cast<size_t>(columns) + 1, Numbers::kSpecial);
      std::vector<float> expected = start;
      for (size_t c = 0; c + 1 < start.size(); ++c) expected[c] = quotient(start[c], divisor);
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        std::vector<float> x = start;
        cpu_kernels_at(set).divide(x.data(), divisor, columns);
        ASSERT_TRUE(same_bits(x, expected))
            << cpu_kernels_at(set).name << " " << columns << " by " << divisor;
      }
    }
  }
}

}  // namespace
}  // namespace shardrec::compute
