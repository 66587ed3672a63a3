// Row updates of every set: against a reference in double, against each other bit by bit, and cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/reference.h"
#include "compute/update_jobs.h"

namespace shardrec::compute {
namespace {

std::vector<int64_t> many_widths() {
  std::vector<int64_t> widths = {192, 255, 256, 257, 1000};
  for (int64_t width = 1; width <= 130; ++width) widths.push_back(width);
  return widths;
}

std::string describe(const Kernels& kernels, const UpdateShape& shape) {
  return std::string(kernels.name) + " " + name_of(shape.step) + " " + name_of(shape.element) +
         (shape.weighted ? " weighted" : "") + " width " + std::to_string(shape.width);
}

// Is the element the weight, rounded to its type?
void expect_stored(const UpdateShape& shape, float element, Bounded weight,
                   const std::string& where) {
  if (shape.element == Element::kFloat32) {
    ASSERT_TRUE(weight.holds(element))
        << where << ": " << element << ", " << weight.value << " +- " << weight.error;
    return;
  }
  // The neighbours of the least and the greatest weight that may have been rounded.
  const auto around = [&](double x, bool up) {
    if (!shape.stochastic) return half_value(shape.element, nearest_half(shape.element, x));
    const auto below = magnitude_below(shape.element, x);
    const double magnitude = magnitude_value(format_of(shape.element), below);
    const double next = magnitude_value(format_of(shape.element), below + 1U);
    if (std::fabs(x) == magnitude) return x;
    return x < 0 ? (up ? -magnitude : -next) : (up ? next : magnitude);
  };
  ASSERT_GE(element, around(weight.value - weight.error, false)) << where;
  ASSERT_LE(element, around(weight.value + weight.error, true)) << where;
}

void check_update(const Kernels& kernels, UpdateJob& job, const UpdateShape& shape) {
  const RowUpdate view = job.view();
  std::vector<std::byte> scratch = row_scratch(shape.width);
  kernels.row_update(view, 0, job.unique(), scratch.data());
  const Reference reference(shape.step);
  const bool ranged = view.columns != nullptr && view.sums == nullptr;
  const std::vector<ColumnRange> ranges =
      ranged ? job.columns() : std::vector<ColumnRange>{{0, shape.width}};
  const auto needs = static_cast<size_t>(state_needs(shape.step.kind).sums);
  for (int64_t u = 0; u < job.unique(); ++u) {
    const auto row = static_cast<size_t>(view.rows[u]);
    for (size_t s = 0; s < ranges.size(); ++s) {
      ReferenceRange range = range_before(job, view, u, ranges[s], s);
      std::vector<Bounded> sums;
      if (ranged) {
        sums = reference.sums(range);
      } else {
        for (size_t k = 0; k < needs; ++k) {
          sums.emplace_back(view.sums[static_cast<size_t>(u) * needs + k]);
        }
      }
      reference.step(
          range, sums,
          static_cast<double>(ranged ? ranges[s].end - ranges[s].begin : view.statistic_columns));
      if (state_needs(shape.step.kind).row_values > 0) {
        ASSERT_TRUE(range.state.holds(job.now.states[s][row])) << describe(kernels, shape);
      }
      for (size_t i = 0; i < range.w.size(); ++i) {
        const int64_t c = ranges[s].begin + static_cast<int64_t>(i);
        const std::string where = describe(kernels, shape) + " column " + std::to_string(c);
        expect_stored(shape, job.after(row, c), range.w[i], where);
        if (testing::Test::HasFatalFailure()) return;
        const size_t at = row * static_cast<size_t>(shape.width) + static_cast<size_t>(c);
        if (!range.m.empty()) {
          ASSERT_TRUE(range.m[i].holds(job.now.matrices[0][at])) << where;
        }
        if (!range.v.empty()) {
          ASSERT_TRUE(range.v[i].holds(job.now.matrices[1][at])) << where;
        }
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
  const Tensors expected = job.now;
  kernels.row_update(job.view(), 0, job.unique(), scratch.data());
  ASSERT_TRUE(same_bits(job.now, expected)) << describe(kernels, shape);
}

TEST(RowUpdate, EverySetGivesTheBitsOfTheScalarOne) {
  Random random(22);
  for (const OptimizerStep& step : all_steps()) {
    for (const int64_t width : many_widths()) {
      for (const Numbers numbers : {Numbers::kOrdinary, Numbers::kSpecial}) {
        UpdateShape shape = random_shape(random, width, step, numbers);
        if (uniform(random, 0, 3) == 0) shape.step.eps = 0;
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

TEST(RowUpdate, CutAnywhereAndPrefetchedAnyWayGivesTheSameBits) {
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
        const Tensors whole = job.now;
        RowUpdate view = job.view();
        for (int64_t u = 0; u < shape.unique;) {
          const Prefetch way = random_prefetch(random);
          view.prefetch = &way;
          view.far_gradients = !view.far_gradients;
          const int64_t end = std::min(shape.unique, u + uniform(random, 0, 9));
          kernels.row_update(view, u, end, scratch.data());
          u = end;
        }
        ASSERT_TRUE(same_bits(job.now, whole)) << describe(kernels, shape);
      }
    }
  }
}

TEST(RowUpdate, RowsThatAreNotTouchedKeepTheirBits) {
  Random random(26);
  for (const OptimizerStep& step : all_steps()) {
    for (const Element element : kElements) {
      UpdateShape shape = random_shape(random, uniform(random, 1, 70), step, Numbers::kSpecial);
      shape.element = element;
      UpdateJob job(random, shape);
      std::vector<std::byte> scratch = row_scratch(shape.width);
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        const RowUpdate view = job.view();
        cpu_kernels_at(set).row_update(view, 0, shape.unique, scratch.data());
        std::vector<bool> touched(job.start().table.size());
        for (int64_t u = 0; u < shape.unique; ++u) {
          for (int64_t c = 0; c < shape.width; ++c) {
            touched[job.at(static_cast<size_t>(view.rows[u]), c)] = true;
          }
        }
        for (size_t i = 0; i < touched.size(); ++i) {
          if (touched[i]) continue;
          ASSERT_TRUE(same_bits(job.now.table.at(i), job.start().table.at(i)));
        }
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

}  // namespace
}  // namespace shardrec::compute
