// Rows of 8 bits: every set of kernels against the formula in double, and against one another.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/jobs.h"
#include "compute/kernels.h"
#include "support/one_nan.h"

namespace shardrec::compute {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMost = std::numeric_limits<float>::max();

struct Coded {
  RowScale scale;
  std::vector<uint8_t> codes;
  std::vector<float> back;
};

// There and back; a byte or a float behind the row must stay.
Coded coded_by(const Kernels& kernels, const std::vector<float>& row) {
  const auto count = static_cast<int64_t>(row.size());
  Coded coded;
  coded.codes.assign(row.size() + 1, 0xA5);
  coded.back.assign(row.size() + 1, -7.0F);
  coded.scale = kernels.quantize(row.data(), coded.codes.data(), count);
  kernels.dequantize(coded.codes.data(), coded.scale, coded.back.data(), count);
  EXPECT_EQ(coded.codes.back(), 0xA5) << kernels.name;
  EXPECT_EQ(coded.back.back(), -7.0F) << kernels.name;
  coded.codes.pop_back();
  coded.back.pop_back();
  return coded;
}

void expect_bits(float a, float b, const char* set) {
  EXPECT_TRUE(test::same_number(a, b)) << set << " " << a << " " << b;
}

// By the last set; all others must agree.
Coded coded(const std::vector<float>& row) {
  const Coded best = coded_by(cpu_kernels_at(cpu_kernel_count() - 1), row);
  for (int set = 0; set + 1 < cpu_kernel_count(); ++set) {
    const Kernels& kernels = cpu_kernels_at(set);
    const Coded other = coded_by(kernels, row);
    EXPECT_EQ(other.codes, best.codes) << kernels.name << ", " << row.size() << " columns";
    expect_bits(other.scale.scale, best.scale.scale, kernels.name);
    expect_bits(other.scale.offset, best.scale.offset, kernels.name);
    for (size_t c = 0; c < row.size(); ++c) expect_bits(other.back[c], best.back[c], kernels.name);
  }
  return best;
}

TEST(Quantize, ComesBackWithinTheBound) {
  Random random(5);
  for (int64_t count = 1; count <= 70; ++count) {
    for (const double size : {1.0, 1e-25, 1e30, 3e-6}) {
      std::vector<float> row(static_cast<size_t>(count));
      for (float& x : row) {
        x = static_cast<float>(size * (uniform(random, -1000, 1000) * 1e-3 + (count % 3) * 5));
      }
      const Coded result = coded(row);
      const auto [least, most] = std::minmax_element(row.begin(), row.end());
      const double range = static_cast<double>(*most) - static_cast<double>(*least);
      const double largest = std::max(std::fabs(*least), std::fabs(*most));
      const double bound =
          range / 510 * (1 + 0x1p-12) + 0x1p-23 * largest + static_cast<double>(kLeastRange);
      double furthest = 0;
      for (size_t c = 0; c < row.size(); ++c) {
        const double error =
            std::fabs(static_cast<double>(result.back[c]) - static_cast<double>(row[c]));
        EXPECT_LE(error, bound) << count << " columns of about " << size;
        furthest = std::max(furthest, error);
        // The formula, in double, but for numbers that are half way.
        const double steps = (static_cast<double>(row[c]) - static_cast<double>(*least)) * 255 /
                             (range == 0 ? 1 : range);
        EXPECT_NEAR(result.codes[c], steps, 0.5 + 1e-4);
      }
      if (count == 70) {
        EXPECT_GT(furthest, range / 2000) << "nothing was rounded";
      }
    }
  }
}

TEST(Quantize, RoundsHalvesToEven) {
  const Coded result = coded({0, 255, 0.5F, 1.5F, 2.5F, 253.5F, 254.5F, 3, 0.49999997F});
  EXPECT_EQ(result.codes, (std::vector<uint8_t>{0, 255, 0, 2, 2, 254, 254, 3, 0}));
  EXPECT_EQ(result.scale.scale, 1.0F);
  EXPECT_EQ(result.scale.offset, 0.0F);
}

TEST(Quantize, KeepsEqualNumbersExactly) {
  for (const float x : {0.1F, -3e-39F, kMost, -kMost, 0.0F}) {
    for (const size_t count : {size_t{1}, size_t{7}, size_t{33}}) {
      const Coded result = coded(std::vector<float>(count, x));
      EXPECT_EQ(result.back, std::vector<float>(count, x));
    }
  }
}

TEST(Quantize, KnowsOneZero) {
  for (const size_t count : {size_t{2}, size_t{16}, size_t{19}}) {
    std::vector<float> row(count, 0.0F);
    for (const size_t at : {size_t{0}, count / 2, count - 1}) row[at] = -0.0F;
    const Coded result = coded(row);
    for (const float x : result.back) EXPECT_EQ(std::bit_cast<uint32_t>(x), 0U);
  }
}

TEST(Quantize, SmallerRangesAreNone) {
  const float small = 0x1p-101F;
  EXPECT_EQ(coded({0, small, small / 2}).back, (std::vector<float>{0, 0, 0}));
  const Coded least = coded({0, kLeastRange});
  EXPECT_EQ(least.codes, (std::vector<uint8_t>{0, 255}));
  EXPECT_EQ(coded({1e-40F, 2e-40F, 3e-40F}).back, std::vector<float>(3, 1e-40F));
}

TEST(Quantize, RowsThatAreNotFiniteComeBackAsNan) {
  for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const size_t count : {size_t{1}, size_t{8}, size_t{16}, size_t{35}}) {
      for (const size_t at : {size_t{0}, count / 2, count - 1}) {
        std::vector<float> row(count, 1.5F);
        row[0] = 0.5F;
        row[at] = bad;
        const Coded result = coded(row);
        for (const float x : result.back) EXPECT_TRUE(std::isnan(x)) << count << " at " << at;
      }
    }
  }
  // The range is no float.
  for (const float x : coded({-kMost, 1, kMost}).back) EXPECT_TRUE(std::isnan(x));
  for (const float x : coded({0, 1, kMost}).back) EXPECT_FALSE(std::isnan(x));
}

}  // namespace
}  // namespace shardrec::compute
