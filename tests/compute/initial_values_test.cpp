// Initial values of tables: the documented function of (seed, name, row, column), however cut.
#include "compute/math/initial_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "compute/jobs.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::math {
namespace {

// The definition in initial_values.h, element by element.
float element(const UniformValues& values, int64_t row, int64_t column) {
  const std::array<uint32_t, 4> words = philox(
      {static_cast<uint32_t>(row & 0xFFFFFFFF), static_cast<uint32_t>(row / (int64_t{1} << 32)),
       static_cast<uint32_t>(column / 4), 0},
      {static_cast<uint32_t>(values.key & 0xFFFFFFFF), static_cast<uint32_t>(values.key >> 32)});
  const double u =
      std::ldexp(static_cast<double>(words[static_cast<size_t>(column % 4)] >> 8), -24);
  const double low = values.low;
  const double high = values.high;
  const double scaled = (high - low) * u;
  const auto value = static_cast<float>(low + scaled);
  return value < values.high ? value : std::max(std::nextafterf(values.high, -1e38F), values.low);
}

TEST(FillUniform, IsTheDocumentedFunctionOfRowAndColumnHoweverCut) {
  Random random(31);
  for (int repeat = 0; repeat < 300; ++repeat) {
    const UniformValues values{.key = random(), .low = -0.25F, .high = 0.5F};
    const int64_t first_row = uniform(random, 0, 1) == 0
                                  ? uniform(random, 0, 100)
                                  : (int64_t{1} << 32) - 3 + uniform(random, 0, 6);
    const int64_t rows = uniform(random, 0, 5);
    const int64_t first_column = uniform(random, 0, 40);
    const int64_t columns = uniform(random, 0, 40);
    const size_t stride = static_cast<size_t>(columns + uniform(random, 0, 3));
    std::vector<float> data(static_cast<size_t>(rows) * stride + 8, 77.0F);
    fill_uniform(values, first_row, rows, first_column, columns, data.data(), stride);
    std::vector<float> expected(data.size(), 77.0F);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        expected[static_cast<size_t>(r) * stride + static_cast<size_t>(c)] =
            element(values, first_row + r, first_column + c);
      }
    }
    ASSERT_TRUE(same_bits(data, expected)) << "row " << first_row << " column " << first_column;
  }
}

TEST(FillUniform, GivesTheSameTableForEver) {
  std::vector<float> row(6);
  fill_uniform({.key = table_key(42, "user"), .low = -1, .high = 1}, 7, 1, 0, 6, row.data(), 6);
  EXPECT_EQ(table_key(42, "user"), 0xd53b42323a2e7af2);
  EXPECT_TRUE(same_bits(row, {0x1.a23c7p-2F, 0x1.0ab7f8p-1F, -0x1.0340d8p-1F, -0x1.bc2ffp-1F,
                              -0x1.a6c7p-6F, -0x1.fe00b4p-1F}));
}

TEST(FillUniform, StaysInsideTheRangeAndFillsItEvenly) {
  constexpr int64_t kRows = 4000;
  constexpr int64_t kColumns = 64;
  std::vector<float> data(kRows * kColumns);
  fill_uniform({.key = table_key(1, "t"), .low = -3, .high = 5}, 0, kRows, 0, kColumns, data.data(),
               kColumns);
  std::array<int64_t, 8> counts{};
  for (const float x : data) {
    ASSERT_GE(x, -3.0F);
    ASSERT_LT(x, 5.0F);
    ++counts[static_cast<size_t>(x + 3.0F)];
  }
  const double expected = static_cast<double>(data.size()) / 8;
  for (const int64_t count : counts)
    EXPECT_NEAR(static_cast<double>(count), expected, 5 * std::sqrt(expected));
}

TEST(FillUniform, NeverReachesHighWhereRoundingWould) {
  const float high = std::nextafterf(1.0F, 2.0F);
  std::vector<float> data(4096);
  fill_uniform({.key = 5, .low = 1.0F, .high = high}, 0, 1, 0, 4096, data.data(), 4096);
  EXPECT_TRUE(std::all_of(data.begin(), data.end(), [](float x) { return x == 1.0F; }));
  fill_uniform({.key = 5, .low = 0.5F, .high = 0.5F}, 0, 1, 0, 4096, data.data(), 4096);
  EXPECT_TRUE(std::all_of(data.begin(), data.end(), [](float x) { return x == 0.5F; }));
}

TEST(TableKey, DependsOnSeedAndName) {
  EXPECT_NE(table_key(0, "a"), table_key(1, "a"));
  EXPECT_NE(table_key(0, "a"), table_key(0, "b"));
  EXPECT_NE(table_key(0, ""), table_key(1, ""));
  EXPECT_EQ(table_key(3, "some table"), table_key(3, "some table"));
}

}  // namespace
}  // namespace shardrec::compute::math
