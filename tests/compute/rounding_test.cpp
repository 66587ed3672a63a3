// Stochastic rounding of 16-bit rows by updates of every set.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/math/scalar.h"
#include "compute/update_jobs.h"

namespace shardrec::compute {
namespace {

constexpr Element kHalves[] = {Element::kFloat16, Element::kBfloat16};
constexpr Rounding kRounding{
    .stochastic = true, .seed = 0x123456789, .step = 0xABCDEF0123, .table_key = 0x9876543210ABC};

// SGD of rate 1 on rows of zeros, with gradient -x: the rows become the numbers x, rounded.
struct Rounded {
  Element element = Element::kFloat16;
  int64_t rows = 1;
  std::vector<float> x;  // [rows, width] or, repeated, [width]
  Rounding rounding = kRounding;
  int64_t first_row = 0;
  std::vector<ColumnMap> maps = {};

  std::vector<uint16_t> by(const Kernels& kernels) const {
    const auto count = static_cast<size_t>(rows);
    const auto width =
        static_cast<size_t>(maps.empty() ? x.size() : 0) +
        static_cast<size_t>(maps.empty() ? 0 : maps.back().offset + maps.back().count);
    std::vector<uint16_t> table(count * width, 0);
    std::vector<float> negative;
    for (const float number : x) negative.push_back(-number);
    std::vector<const float*> gradients;
    std::vector<int64_t> each;
    std::vector<uint32_t> bags;
    for (size_t r = 0; r < count; ++r) {
      gradients.push_back(negative.data() + (x.size() > width ? r * width : 0));
      each.push_back(static_cast<int64_t>(r));
      bags.push_back(static_cast<uint32_t>(r));
    }
    std::vector<int64_t> run = each;
    run.push_back(rows);
    const std::vector<uint32_t> blocks(count, 0);
    std::vector<std::byte> scratch = row_scratch(static_cast<int64_t>(width));
    kernels.row_update({.table = table.data(),
                        .element = element,
                        .stride = width,
                        .width = static_cast<int64_t>(width),
                        .rows = each.data(),
                        .run = run.data(),
                        .bags = bags.data(),
                        .gradients = gradients.data(),
                        .blocks = blocks.data(),
                        .step = {.learning_rate = 1},
                        .rounding = rounding,
                        .first_row = first_row,
                        .column_map = maps.data(),
                        .column_maps = static_cast<int>(maps.size())},
                       0, rows, scratch.data());
    return table;
  }
};

// Numbers between the patterns of all magnitudes.
std::vector<float> numbers_between(Random& random, Element element, size_t count) {
  const HalfFormat format = format_of(element);
  std::vector<float> numbers;
  while (numbers.size() < count) {
    const auto pattern = static_cast<uint32_t>(uniform(random, 0, format.infinity - 2));
    const double low = magnitude_value(format, pattern);
    const double high = magnitude_value(format, pattern + 1);
    const double u = std::uniform_real_distribution<double>(0, 1)(random);
    numbers.push_back(static_cast<float>((low + u * (high - low)) * (pattern % 3 == 0 ? -1 : 1)));
  }
  return numbers;
}

// The definition in element.h.
uint16_t defined_rounding(Element element, const Rounding& rounding, uint64_t row, uint64_t column,
                          float x) {
  const math::PhiloxCounter key =
      math::philox({static_cast<uint32_t>(rounding.seed % (uint64_t{1} << 32)),
                    static_cast<uint32_t>(rounding.seed / (uint64_t{1} << 32)),
                    static_cast<uint32_t>(rounding.step / (uint64_t{1} << 32)), 1},
                   {static_cast<uint32_t>(rounding.table_key % (uint64_t{1} << 32)),
                    static_cast<uint32_t>(rounding.table_key / (uint64_t{1} << 32))});
  const math::PhiloxCounter words = math::philox(
      {static_cast<uint32_t>(row % (uint64_t{1} << 32)),
       static_cast<uint32_t>(row / (uint64_t{1} << 32)), static_cast<uint32_t>(column / 4),
       static_cast<uint32_t>(rounding.step % (uint64_t{1} << 32))},
      {key[0], key[1]});
  const HalfFormat format = format_of(element);
  const uint16_t below = magnitude_below(element, x);
  const double low = magnitude_value(format, below);
  const double f =
      (std::fabs(static_cast<double>(x)) - low) / (magnitude_value(format, below + 1U) - low);
  const double reached = std::floor(f * 0x1p31) + std::floor(words[column % 4] / 2.0);
  return static_cast<uint16_t>((std::signbit(x) ? 0x8000 : 0) + below +
                               (reached >= 0x1p31 ? 1 : 0));
}

TEST(StochasticRounding, IsTheDocumentedFunctionOfRowAndColumn) {
  Random random(51);
  for (const Element element : kHalves) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      Rounded job{.element = element, .rows = 3, .first_row = (int64_t{1} << 32) - 2};
      const auto width = static_cast<size_t>(uniform(random, 1, 200));
      job.x = numbers_between(random, element, 3 * width);
      const int64_t column = uniform(random, 0, 1000);
      job.maps = {{0, column, static_cast<int64_t>(width)}};
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        const std::vector<uint16_t> halves = job.by(cpu_kernels_at(set));
        for (size_t i = 0; i < halves.size(); ++i) {
          const uint64_t row = static_cast<uint64_t>(job.first_row) + i / width;
          const uint64_t at = static_cast<uint64_t>(column) + i % width;
          ASSERT_EQ(halves[i], defined_rounding(element, kRounding, row, at, job.x[i]))
              << cpu_kernels_at(set).name << " " << name_of(element) << " " << job.x[i];
        }
      }
    }
  }
}

TEST(StochasticRounding, MeanOfManyIsTheNumber) {
  struct Case {
    Element element;
    double number;
  };
  const std::vector<Case> cases = {
      {Element::kFloat16, 1.0003},
      {Element::kFloat16, -3.14159},
      {Element::kFloat16, 1000.1},
      {Element::kFloat16, 0x1.3p-24},  // subnormal
      {Element::kFloat16, 100.7 * 0x1p-24},
      {Element::kFloat16, 0.01 * 0x1p-24},
      {Element::kFloat16, 1023.4 * 0x1p-24},  // between the subnormals and 2^-14
      {Element::kFloat16, 2.0 - 0x1p-12},     // between two binades
      {Element::kBfloat16, 1.001},
      {Element::kBfloat16, -3.14159},
      {Element::kBfloat16, 1e30},
      {Element::kBfloat16, 1e-39},  // subnormal
      {Element::kBfloat16, 2.0 - 0x1p-10}};
  constexpr int64_t kRows = 500;
  constexpr size_t kRowWidth = 200;
  constexpr double kCount = kRows * kRowWidth;
  for (const Case& test : cases) {
    const auto x = static_cast<float>(test.number);
    const Rounded job{
        .element = test.element, .rows = kRows, .x = std::vector<float>(kRowWidth, x)};
    const std::vector<uint16_t> halves = job.by(cpu_kernels());
    const HalfFormat format = format_of(test.element);
    const uint16_t below = magnitude_below(test.element, x);
    const double gap = magnitude_value(format, below + 1U) - magnitude_value(format, below);
    double ups = 0;
    for (const uint16_t half : halves) {
      ASSERT_EQ((half & 0x8000) != 0, x < 0);
      const int up = (half & 0x7FFF) - below;
      ASSERT_TRUE(up == 0 || up == 1);
      ups += up;
    }
    const double p = (std::fabs(static_cast<double>(x)) - magnitude_value(format, below)) / gap;
    EXPECT_NEAR(ups / kCount, p, 3 * std::sqrt(p * (1 - p) / kCount))
        << name_of(test.element) << " " << test.number;
  }
}

TEST(StochasticRounding, NumbersOfTheTypeStay) {
  for (const Element element : kHalves) {
    Rounded job{.element = element, .rows = 2};
    std::vector<uint16_t> expected;
    for (uint32_t p = 0; p < 65536; ++p) {
      const double value = half_value(element, static_cast<uint16_t>(p));
      // A difference is never -0.
      if (std::isnan(value) || p == 0x8000) continue;
      job.x.push_back(static_cast<float>(value));
      expected.push_back(static_cast<uint16_t>(p));
    }
    std::vector<uint16_t> twice = expected;
    twice.insert(twice.end(), expected.begin(), expected.end());
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      EXPECT_EQ(job.by(cpu_kernels_at(set)), twice)
          << cpu_kernels_at(set).name << " " << name_of(element);
    }
  }
}

TEST(StochasticRounding, IsInfiniteExactlyWhereNearestIs) {
  struct Case {
    Element element;
    float number;
    uint16_t half;
  };
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const std::vector<Case> cases = {
      {Element::kFloat16, 65519.996F, 0x7BFF},        {Element::kFloat16, -65519.996F, 0xFBFF},
      {Element::kFloat16, 65520.0F, 0x7C00},          {Element::kFloat16, -1e30F, 0xFC00},
      {Element::kFloat16, kInfinite, 0x7C00},         {Element::kBfloat16, 0x1.FEFFFEp127F, 0x7F7F},
      {Element::kBfloat16, -0x1.FEFFFEp127F, 0xFF7F}, {Element::kBfloat16, 0x1.FFp127F, 0x7F80},
      {Element::kBfloat16, -kInfinite, 0xFF80},       {Element::kFloat16, std::nanf(""), 0x7E00},
      {Element::kBfloat16, std::nanf(""), 0x7FC0}};
  for (const Case& test : cases) {
    const Rounded job{
        .element = test.element, .rows = 20, .x = std::vector<float>(50, test.number)};
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      EXPECT_EQ(job.by(cpu_kernels_at(set)), std::vector<uint16_t>(1000, test.half))
          << cpu_kernels_at(set).name << " " << name_of(test.element) << " " << test.number;
    }
  }
}

TEST(StochasticRounding, BitsDoNotDependOnTheCutIntoRowsAndColumns) {
  Random random(52);
  constexpr size_t kRows = 9;
  for (const Element element : kHalves) {
    for (int repeat = 0; repeat < 30; ++repeat) {
      const auto width = static_cast<size_t>(uniform(random, 3, 150));
      Rounded whole{.element = element, .rows = kRows, .first_row = 70};
      whole.x = numbers_between(random, element, kRows * width);
      whole.maps = {{0, 0, static_cast<int64_t>(width)}};
      // The middle columns are one part, the two sides side by side another.
      const auto left = static_cast<size_t>(uniform(random, 1, static_cast<int64_t>(width) - 2));
      const auto right = static_cast<size_t>(
          uniform(random, static_cast<int64_t>(left) + 1, static_cast<int64_t>(width) - 1));
      const auto top = static_cast<size_t>(uniform(random, 1, kRows - 1));
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        const Kernels& kernels = cpu_kernels_at(set);
        const std::vector<uint16_t> expected = whole.by(kernels);
        for (const bool upper : {true, false}) {
          const size_t first = upper ? 0 : top;
          const size_t last = upper ? top : kRows;
          for (const bool middle : {true, false}) {
            std::vector<size_t> columns;
            for (size_t c = 0; c < width; ++c) {
              if ((left <= c && c < right) == middle) columns.push_back(c);
            }
            Rounded part{.element = element,
                         .rows = static_cast<int64_t>(last - first),
                         .first_row = 70 + static_cast<int64_t>(first)};
            const auto count = [](size_t n) { return static_cast<int64_t>(n); };
            if (middle) {
              part.maps = {{0, count(left), count(right - left)}};
            } else {
              part.maps = {{0, 0, count(left)}, {count(left), count(right), count(width - right)}};
            }
            std::vector<uint16_t> of_whole;
            for (size_t r = first; r < last; ++r) {
              for (const size_t c : columns) {
                part.x.push_back(whole.x[r * width + c]);
                of_whole.push_back(expected[r * width + c]);
              }
            }
            ASSERT_EQ(part.by(kernels), of_whole) << kernels.name << " width " << width;
          }
        }
      }
    }
  }
}

TEST(StochasticRounding, SeedStepTableAndRowEachMakeOtherBits) {
  const std::vector<float> x(256, 1.00048828125F);  // halfway between two numbers of fp16
  Rounded job{.element = Element::kFloat16, .rows = 4, .x = x};
  const std::vector<uint16_t> first = job.by(cpu_kernels());
  const auto expect_independent = [&](const std::vector<uint16_t>& other) {
    int64_t differences = 0;
    for (size_t i = 0; i < first.size(); ++i) differences += first[i] != other[i] ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(differences), 512, 4 * 16);  // 4 sigma of 1024 coins
  };
  for (const uint64_t bit : {0, 31, 32, 63}) {
    const uint64_t flip = uint64_t{1} << bit;
    Rounded seed = job;
    seed.rounding.seed ^= flip;
    expect_independent(seed.by(cpu_kernels()));
    Rounded step = job;
    step.rounding.step ^= flip;
    expect_independent(step.by(cpu_kernels()));
    Rounded table = job;
    table.rounding.table_key ^= flip;
    expect_independent(table.by(cpu_kernels()));
  }
  Rounded row = job;
  row.first_row = int64_t{1} << 32;
  expect_independent(row.by(cpu_kernels()));
  Rounded column = job;
  column.maps = {{0, 256, 256}};
  expect_independent(column.by(cpu_kernels()));
}

}  // namespace
}  // namespace shardrec::compute
