// Row updates of every set: against a reference in double, against each other bit by bit, and cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "compute/jobs.h"
#include "compute/kernels.h"

namespace shardrec::compute {
namespace {

constexpr double kUnit = 0x1p-24;

std::vector<OptimizerStep> all_steps() {
  std::vector<OptimizerStep> steps;
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kRowwiseAdagrad}) {
    for (const WeightDecay mode : {WeightDecay::kNone, WeightDecay::kL2, WeightDecay::kDecouple}) {
      steps.push_back({.kind = kind,
                       .decay_mode = mode,
                       .learning_rate = 0.05F,
                       .eps = 1e-8F,
                       .weight_decay = 0.3F});
    }
  }
  return steps;
}

std::string name_of(const OptimizerStep& step) {
  return "kind " + std::to_string(static_cast<int>(step.kind)) + " decay " +
         std::to_string(static_cast<int>(step.decay_mode));
}

UpdateShape random_shape(Random& random, int64_t width, const OptimizerStep& step,
                         Numbers numbers) {
  return {.width = width,
          .unique = uniform(random, 1, 12),
          .longest = uniform(random, 1, 9),
          .bags = uniform(random, 1, 40),
          .bags_per_block = uniform(random, 1, 9),
          .padding = static_cast<size_t>(uniform(random, 0, 5)),
          .weighted = uniform(random, 0, 1) == 1,
          .ranges = static_cast<int>(uniform(random, 1, std::min<int64_t>(width, 4))),
          .given = uniform(random, 0, 3) == 0,
          .numbers = numbers,
          .step = step};
}

// A number with a bound on its error.
struct Bounded {
  double value = 0;
  double error = 0;
};

// The summed gradient of a column: the error of n fused sums and of the sums over blocks.
Bounded gradient_of(const RowUpdate& job, int64_t u, int64_t column) {
  Bounded sum;
  double terms = 0;
  for (int64_t o = job.run[u]; o < job.run[u + 1]; ++o) {
    const double weight = job.weights == nullptr ? 1.0 : job.weights[o];
    const double term = weight * static_cast<double>(job.gradients[job.bags[o]][column]);
    sum.value += term;
    terms += std::fabs(term);
  }
  sum.error = 1.01 * kUnit * static_cast<double>(2 * (job.run[u + 1] - job.run[u])) * terms;
  return sum;
}

Bounded square_sum_of(const RowUpdate& job, int64_t u, const float* row, ColumnRange range) {
  Bounded sum;
  for (int64_t c = range.begin; c < range.end; ++c) {
    Bounded e = gradient_of(job, u, c);
    if (job.step.decay_mode == WeightDecay::kL2) {
      e.value += static_cast<double>(job.step.weight_decay) * static_cast<double>(row[c]);
      e.error += 1.01 * kUnit * (std::fabs(e.value) + e.error);
    }
    sum.value += e.value * e.value;
    sum.error += 2 * std::fabs(e.value) * e.error + e.error * e.error;
  }
  sum.error +=
      1.01 * kUnit * static_cast<double>(range.end - range.begin + 5) * (sum.value + sum.error);
  return sum;
}

// Expects weight and its bound from the rate's interval.
void expect_stepped(float actual, double weight, const OptimizerStep& step, Bounded rate, Bounded g,
                    const std::string& where) {
  const double decay = step.weight_decay;
  double kept = 1;
  double kept_error = 0;
  if (step.decay_mode == WeightDecay::kL2) {
    kept = 1 - rate.value * decay;
    kept_error = rate.error * decay;
  } else if (step.decay_mode == WeightDecay::kDecouple) {
    kept = 1 - static_cast<double>(step.learning_rate) * decay;
  }
  const double expected = kept * weight - rate.value * g.value;
  const double size =
      (1 + std::fabs(rate.value) * decay) * std::fabs(weight) + rate.value * std::fabs(g.value);
  const double error = kept_error * std::fabs(weight) +
                       rate.error * (std::fabs(g.value) + g.error) + rate.value * g.error +
                       4 * kUnit * size;
  ASSERT_LE(std::fabs(static_cast<double>(actual) - expected), error) << where;
}

void check_update(const Kernels& kernels, UpdateJob& job, const UpdateShape& shape) {
  const RowUpdate view = job.view();
  std::vector<std::byte> scratch = row_scratch(shape.width);
  kernels.row_update(view, 0, job.unique(), scratch.data());
  const bool adagrad = shape.step.kind == OptimizerKind::kRowwiseAdagrad;
  const std::vector<ColumnRange> ranges =
      adagrad ? job.columns() : std::vector<ColumnRange>{{0, shape.width}};
  for (int64_t u = 0; u < job.unique(); ++u) {
    const auto row = static_cast<size_t>(view.rows[u]);
    const float* before = job.start_table().data() + row * view.stride;
    for (size_t s = 0; s < ranges.size(); ++s) {
      Bounded rate{.value = shape.step.learning_rate};
      if (adagrad) {
        Bounded sum{.value = view.sums == nullptr ? 0.0 : view.sums[u]};
        double columns = static_cast<double>(view.statistic_columns);
        if (view.sums == nullptr) {
          sum = square_sum_of(view, u, before, ranges[s]);
          columns = static_cast<double>(ranges[s].end - ranges[s].begin);
        }
        const double h = job.start_states()[s][row] + sum.value / columns;
        const double h_error = sum.error / columns + 2 * kUnit * h;
        ASSERT_LE(std::fabs(static_cast<double>(job.states[s][row]) - h), h_error) << kernels.name;
        const auto rate_at = [&](double state) {
          return static_cast<double>(shape.step.learning_rate) /
                 (std::sqrt(std::max(state, 0.0)) + static_cast<double>(shape.step.eps));
        };
        rate.value = rate_at(h);
        rate.error = rate_at(h - h_error) - rate_at(h + h_error) + 4 * kUnit * rate.value;
      }
      for (int64_t c = ranges[s].begin; c < ranges[s].end; ++c) {
        expect_stepped(job.table[row * view.stride + static_cast<size_t>(c)], before[c], shape.step,
                       rate, gradient_of(view, u, c),
                       std::string(kernels.name) + " " + name_of(shape.step) + " width " +
                           std::to_string(shape.width) + " column " + std::to_string(c));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(RowUpdate, IsTheOptimizersFormulaWithinTheRoundingOfItsTerms) {
  Random random(21);
  for (const OptimizerStep& step : all_steps()) {
    for (int64_t width = 1; width <= 130; ++width) {
      const UpdateShape shape = random_shape(random, width, step, Numbers::kOrdinary);
      UpdateJob job(random, shape);
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        check_update(cpu_kernels_at(set), job, shape);
        if (HasFatalFailure()) return;
      }
    }
  }
}

void expect_same_bits(const Kernels& kernels, UpdateJob& job, const UpdateShape& shape) {
  std::vector<std::byte> scratch = row_scratch(shape.width);
  scalar().row_update(job.view(), 0, job.unique(), scratch.data());
  const std::vector<float> table = job.table;
  const std::vector<std::vector<float>> states = job.states;
  kernels.row_update(job.view(), 0, job.unique(), scratch.data());
  ASSERT_TRUE(same_bits(job.table, table))
      << kernels.name << " " << name_of(shape.step) << " width " << shape.width;
  for (size_t s = 0; s < states.size(); ++s)
    ASSERT_TRUE(same_bits(job.states[s], states[s])) << kernels.name;
}

TEST(RowUpdate, EverySetGivesTheBitsOfTheScalarOne) {
  Random random(22);
  std::vector<int64_t> widths = {192, 255, 256, 257, 1000};
  for (int64_t width = 1; width <= 130; ++width) widths.push_back(width);
  for (const OptimizerStep& step : all_steps()) {
    for (const int64_t width : widths) {
      for (const Numbers numbers : {Numbers::kOrdinary, Numbers::kSpecial}) {
        const UpdateShape shape = random_shape(random, width, step, numbers);
        UpdateJob job(random, shape);
        for (int set = 1; set < cpu_kernel_count(); ++set) {
          expect_same_bits(cpu_kernels_at(set), job, shape);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(RowUpdate, LongRunsOverManyBlocksGiveTheSameBits) {
  Random random(23);
  for (const OptimizerStep& step : all_steps()) {
    for (const int64_t longest : {500, 5000}) {
      UpdateShape shape{.width = uniform(random, 1, 70),
                        .unique = 3,
                        .longest = longest,
                        .bags = 3000,
                        .bags_per_block = 512,
                        .step = step};
      shape.weighted = uniform(random, 0, 1) == 1;
      UpdateJob job(random, shape);
      for (int set = 1; set < cpu_kernel_count(); ++set) {
        expect_same_bits(cpu_kernels_at(set), job, shape);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(RowUpdate, CutAnywhereGivesTheSameBits) {
  Random random(24);
  for (const OptimizerStep& step : all_steps()) {
    for (int repeat = 0; repeat < 10; ++repeat) {
      UpdateShape shape = random_shape(random, uniform(random, 1, 150), step, Numbers::kOrdinary);
      shape.unique = 40;
      UpdateJob job(random, shape);
      std::vector<std::byte> scratch = row_scratch(shape.width);
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        const Kernels& kernels = cpu_kernels_at(set);
        kernels.row_update(job.view(), 0, shape.unique, scratch.data());
        const std::vector<float> table = job.table;
        const std::vector<std::vector<float>> states = job.states;
        const RowUpdate view = job.view();
        for (int64_t u = 0; u < shape.unique;) {
          const int64_t end = std::min(shape.unique, u + uniform(random, 0, 9));
          kernels.row_update(view, u, end, scratch.data());
          u = end;
        }
        ASSERT_TRUE(same_bits(job.table, table)) << kernels.name << " " << name_of(step);
        for (size_t s = 0; s < states.size(); ++s) ASSERT_TRUE(same_bits(job.states[s], states[s]));
      }
    }
  }
}

TEST(RowUpdate, GradientIsSummedInsideBlocksThenOverThem) {
  // 1e8 + 1 is 1e8 in fp32: the sums tell which terms met first.
  const std::vector<float> values = {1e8F, 1.0F, -1e8F, 1.0F, 1e8F};
  std::vector<const float*> gradients;
  for (const float& value : values) gradients.push_back(&value);
  const std::vector<uint32_t> bags = {0, 1, 2, 3, 3, 4};
  const std::vector<int64_t> run = {0, 4, 5, 6};
  const std::vector<int64_t> rows = {0, 1, 3};
  struct Case {
    std::vector<uint32_t> blocks;
    float sum;
  };
  const std::vector<Case> cases = {{{0, 0, 0, 0, 0}, 1.0F},   // ((1e8 + 1) - 1e8) + 1
                                   {{0, 0, 1, 1, 1}, 0.0F},   // (1e8 + 1) + (-1e8 + 1)
                                   {{0, 1, 2, 2, 2}, 0.0F},   // (1e8 + 1) + (-1e8 + 1)
                                   {{0, 1, 2, 3, 3}, 1.0F},   // ((1e8 + 1) - 1e8) + 1
                                   {{4, 7, 7, 9, 9}, 1.0F}};  // (1e8 + (1 - 1e8)) + 1
  for (const Case& test : cases) {
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      std::vector<float> table(4, 0.0F);
      std::vector<std::byte> scratch = row_scratch(1);
      cpu_kernels_at(set).row_update({.table = table.data(),
                                      .stride = 1,
                                      .width = 1,
                                      .rows = rows.data(),
                                      .run = run.data(),
                                      .bags = bags.data(),
                                      .gradients = gradients.data(),
                                      .blocks = test.blocks.data(),
                                      .step = {.learning_rate = 1}},
                                     0, 3, scratch.data());
      EXPECT_EQ(table, (std::vector<float>{-test.sum, -1.0F, 0.0F, -1e8F}))
          << cpu_kernels_at(set).name << " blocks " << test.blocks[1] << test.blocks[2]
          << test.blocks[3];
    }
  }
}

TEST(RowUpdate, RowTouchedByAZeroGradientIsSteppedAndOthersAreNot) {
  const std::vector<float> zero(20, 0.0F);
  const float* gradient = zero.data();
  const std::vector<uint32_t> bags = {0};
  const std::vector<uint32_t> blocks = {0};
  const std::vector<int64_t> run = {0, 1};
  const std::vector<int64_t> rows = {1};
  const ColumnRange all{0, 20};
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    std::vector<float> table(60, 2.0F);
    std::vector<float> state = {4.0F, 4.0F, 4.0F};
    float* state_pointer = state.data();
    std::vector<std::byte> scratch = row_scratch(20);
    cpu_kernels_at(set).row_update({.table = table.data(),
                                    .stride = 20,
                                    .width = 20,
                                    .rows = rows.data(),
                                    .run = run.data(),
                                    .bags = bags.data(),
                                    .gradients = &gradient,
                                    .blocks = blocks.data(),
                                    .step = {.kind = OptimizerKind::kRowwiseAdagrad,
                                             .decay_mode = WeightDecay::kDecouple,
                                             .learning_rate = 0.5F,
                                             .weight_decay = 0.5F},
                                    .state = &state_pointer,
                                    .columns = &all,
                                    .statistics = 1},
                                   0, 1, scratch.data());
    for (size_t i = 0; i < table.size(); ++i) EXPECT_EQ(table[i], i / 20 == 1 ? 1.5F : 2.0F) << i;
    EXPECT_EQ(state, (std::vector<float>{4.0F, 4.0F, 4.0F}));
  }
}

TEST(RowSquareSums, AreTheSumsThatTheUpdateTakesOverTheSameColumns) {
  Random random(25);
  for (const WeightDecay mode : {WeightDecay::kNone, WeightDecay::kL2, WeightDecay::kDecouple}) {
    for (int64_t width = 1; width <= 130; ++width) {
      OptimizerStep step = all_steps()[3];
      step.decay_mode = mode;
      UpdateShape shape = random_shape(random, width, step,
                                       width % 3 == 0 ? Numbers::kSpecial : Numbers::kOrdinary);
      shape.given = false;
      UpdateJob job(random, shape);
      std::vector<std::byte> scratch = row_scratch(width);
      std::vector<float> expected;
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        const Kernels& kernels = cpu_kernels_at(set);
        const RowUpdate view = job.view();
        const int ranges = view.statistics;
        std::vector<float> sums(static_cast<size_t>(shape.unique * ranges), -1.0F);
        const int64_t cut = uniform(random, 0, shape.unique);
        kernels.row_sums(view, view.columns, ranges, sums.data(), 0, cut, scratch.data());
        kernels.row_sums(view, view.columns, ranges, sums.data(), cut, shape.unique,
                         scratch.data());
        EXPECT_TRUE(same_bits(job.table, job.start_table())) << "nothing is updated";
        if (set == 0) expected = sums;
        ASSERT_TRUE(same_bits(sums, expected)) << kernels.name << " width " << width;
        kernels.row_update(view, 0, shape.unique, scratch.data());
        for (int64_t u = 0; u < shape.unique; ++u) {
          for (int s = 0; s < ranges; ++s) {
            const auto row = static_cast<size_t>(view.rows[u]);
            const auto range = static_cast<size_t>(s);
            const auto columns = static_cast<float>(view.columns[s].end - view.columns[s].begin);
            const float sum = sums[static_cast<size_t>(u * ranges + s)];
            ASSERT_TRUE(
                same_bits(job.states[range][row], job.start_states()[range][row] + sum / columns));
          }
        }
      }
    }
  }
}

TEST(RowSquareSums, LanesAreColumnsMod16CountedFromTheRangeAndAddedAsATree) {
  // Squares that only survive when they meet in the promised order: 2^24 + 1 is 2^24 in fp32.
  const float big = 0x1p12F;
  std::vector<float> gradient(64, 0.0F);
  gradient[3] = big;     // range [3, 43): lane 0
  gradient[3 + 16] = 1;  // lane 0 too: lost beside 2^24
  gradient[3 + 8] = 1;   // lane 8 meets lane 0 first: lost
  gradient[3 + 1] = 1;   // lanes 1 and 9 make 2, then meet 2^24 last: kept
  gradient[3 + 9] = 1;
  const float* pointer = gradient.data();
  const std::vector<uint32_t> bags = {0};
  const std::vector<uint32_t> blocks = {0};
  const std::vector<int64_t> run = {0, 1};
  const std::vector<int64_t> rows = {0};
  const std::vector<ColumnRange> ranges = {{3, 43}, {4, 43}};
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    std::vector<float> table(64, 0.0F);
    std::vector<float> sums(2);
    std::vector<std::byte> scratch = row_scratch(64);
    cpu_kernels_at(set).row_sums({.table = table.data(),
                                  .stride = 64,
                                  .width = 64,
                                  .rows = rows.data(),
                                  .run = run.data(),
                                  .bags = bags.data(),
                                  .gradients = &pointer,
                                  .blocks = blocks.data(),
                                  .step = {.kind = OptimizerKind::kRowwiseAdagrad}},
                                 ranges.data(), 2, sums.data(), 0, 1, scratch.data());
    EXPECT_EQ(sums[0], 0x1p24F + 2) << cpu_kernels_at(set).name;
    EXPECT_EQ(sums[1], 4.0F);
  }
}

}  // namespace
}  // namespace shardrec::compute
