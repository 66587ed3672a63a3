// max_norm of every set: norms of stored rows, and rows scaled back to the longest allowed.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/reference.h"
#include "compute/update_jobs.h"

namespace shardrec::compute {
namespace {

constexpr float kMaxNorm = 3.0F;

UpdateShape norm_shape(Random& random, int64_t width, Numbers numbers) {
  OptimizerStep step = step_of(OptimizerKind::kSgd, WeightDecay::kNone);
  step.max_norm = kMaxNorm;
  return random_shape(random, width, step, numbers);
}

std::vector<ColumnRange> cut(int64_t width, int64_t ranges) {
  std::vector<ColumnRange> all;
  for (int64_t r = 0; r < ranges; ++r)
    all.push_back({width * r / ranges, width * (r + 1) / ranges});
  return all;
}

std::vector<float> norms_of(const Kernels& kernels, const RowUpdate& view,
                            const std::vector<ColumnRange>& ranges, int64_t unique) {
  std::vector<float> norms(static_cast<size_t>(unique) * ranges.size(), -1.0F);
  std::vector<std::byte> scratch = row_scratch(view.width);
  const auto count = static_cast<int>(ranges.size());
  kernels.row_norms(view, ranges.data(), count, norms.data(), 0, unique / 2, scratch.data());
  kernels.row_norms(view, ranges.data(), count, norms.data(), unique / 2, unique, scratch.data());
  return norms;
}

TEST(RowNorms, AreTheSquaresOfTheStoredRows) {
  Random random(61);
  for (int64_t width = 1; width <= 130; ++width) {
    const UpdateShape shape = norm_shape(random, width, Numbers::kOrdinary);
    UpdateJob job(random, shape);
    const RowUpdate view = job.view();
    const std::vector<ColumnRange> ranges = cut(width, shape.ranges);
    const std::vector<float> expected = norms_of(scalar(), view, ranges, shape.unique);
    for (int set = 1; set < cpu_kernel_count(); ++set) {
      ASSERT_TRUE(same_bits(norms_of(cpu_kernels_at(set), view, ranges, shape.unique), expected))
          << cpu_kernels_at(set).name << " " << name_of(shape.element) << " width " << width;
    }
    for (int64_t u = 0; u < shape.unique; ++u) {
      for (size_t r = 0; r < ranges.size(); ++r) {
        Bounded sum = 0;
        for (int64_t c = ranges[r].begin; c < ranges[r].end; ++c) {
          const Bounded w = static_cast<double>(job.before(static_cast<size_t>(view.rows[u]), c));
          sum = sum + w * w;
        }
        ASSERT_TRUE(sum.holds(expected[static_cast<size_t>(u) * ranges.size() + r]));
      }
    }
  }
}

TEST(RowRescale, BringsLongRowsToTheNormAndLeavesOthersAlone) {
  Random random(62);
  int64_t scaled = 0;
  int64_t left = 0;
  for (int64_t width = 1; width <= 130; ++width) {
    UpdateShape shape = norm_shape(random, width, Numbers::kOrdinary);
    shape.stochastic = false;
    UpdateJob job(random, shape);
    const std::vector<ColumnRange> ranges = cut(width, shape.ranges);
    std::vector<std::byte> scratch = row_scratch(width);
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      const Kernels& kernels = cpu_kernels_at(set);
      const RowUpdate view = job.view();
      const std::vector<float> norms = norms_of(kernels, view, ranges, shape.unique);
      kernels.row_rescale(view, ranges.data(), static_cast<int>(ranges.size()), norms.data(), 0,
                          shape.unique, scratch.data());
      for (int64_t u = 0; u < shape.unique; ++u) {
        const auto row = static_cast<size_t>(view.rows[u]);
        for (size_t r = 0; r < ranges.size(); ++r) {
          const double norm =
              std::sqrt(static_cast<double>(norms[static_cast<size_t>(u) * ranges.size() + r]));
          const bool too_long = norm > static_cast<double>(kMaxNorm);
          (too_long ? scaled : left) += 1;
          for (int64_t c = ranges[r].begin; c < ranges[r].end; ++c) {
            const auto before = static_cast<double>(job.before(row, c));
            const auto after = static_cast<double>(job.after(row, c));
            if (!too_long) {
              ASSERT_EQ(after, before);
              continue;
            }
            const Bounded expected =
                Bounded(kMaxNorm) /
                sqrt(Bounded(norms[static_cast<size_t>(u) * ranges.size() + r])) * before;
            if (shape.element == Element::kFloat32) {
              ASSERT_TRUE(expected.holds(after)) << kernels.name << " width " << width;
            } else {
              ASSERT_GE(after,
                        half_value(shape.element,
                                   nearest_half(shape.element, expected.value - expected.error)));
              ASSERT_LE(after,
                        half_value(shape.element,
                                   nearest_half(shape.element, expected.value + expected.error)));
            }
          }
        }
      }
    }
  }
  EXPECT_GT(scaled, 100);
  EXPECT_GT(left, 100);
}

TEST(RowRescale, EverySetGivesTheBitsOfTheScalarOneWithAnyRounding) {
  Random random(63);
  for (int64_t width = 1; width <= 130; ++width) {
    const UpdateShape shape =
        norm_shape(random, width, width % 2 == 0 ? Numbers::kSpecial : Numbers::kOrdinary);
    UpdateJob job(random, shape);
    const std::vector<ColumnRange> ranges = cut(width, shape.ranges);
    std::vector<std::byte> scratch = row_scratch(width);
    Tensors expected;
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      const Kernels& kernels = cpu_kernels_at(set);
      const RowUpdate view = job.view();
      const std::vector<float> norms = norms_of(scalar(), view, ranges, shape.unique);
      const int64_t middle = uniform(random, 0, shape.unique);
      const auto count = static_cast<int>(ranges.size());
      kernels.row_rescale(view, ranges.data(), count, norms.data(), 0, middle, scratch.data());
      kernels.row_rescale(view, ranges.data(), count, norms.data(), middle, shape.unique,
                          scratch.data());
      if (set == 0) expected = job.now;
      ASSERT_TRUE(same_bits(job.now, expected)) << kernels.name << " width " << width;
    }
  }
}

TEST(RowRescale, StochasticRoundingUsesOtherWordsThanTheStep) {
  // The same numbers rounded by a step and by max_norm: where both used the same word, they agreed.
  constexpr int64_t kWidth = 1024;
  const float x = 1.00048828125F;  // halfway between two numbers of fp16
  const std::vector<float> gradient(kWidth, -x);
  const float* pointer = gradient.data();
  const std::vector<int64_t> rows = {0};
  const std::vector<int64_t> run = {0, 1};
  const std::vector<uint32_t> zero = {0};
  const ColumnRange all{0, kWidth};
  std::vector<std::byte> scratch = row_scratch(kWidth);
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    std::vector<uint16_t> stepped(kWidth, 0);
    RowUpdate job{.table = stepped.data(),
                  .element = Element::kFloat16,
                  .stride = kWidth,
                  .width = kWidth,
                  .rows = rows.data(),
                  .run = run.data(),
                  .bags = zero.data(),
                  .gradients = &pointer,
                  .blocks = zero.data(),
                  .step = {.learning_rate = 1, .max_norm = x},
                  .rounding = {.stochastic = true, .seed = 3, .step = 4, .table_key = 5}};
    cpu_kernels_at(set).row_update(job, 0, 1, scratch.data());
    std::vector<uint16_t> rescaled(kWidth, 0x4000);  // 2, scaled to x
    job.table = rescaled.data();
    const float norm = 4.0F;
    cpu_kernels_at(set).row_rescale(job, &all, 1, &norm, 0, 1, scratch.data());
    int differences = 0;
    for (size_t c = 0; c < kWidth; ++c) {
      ASSERT_TRUE(rescaled[c] == 0x3C00 || rescaled[c] == 0x3C01);
      differences += stepped[c] != rescaled[c] ? 1 : 0;
    }
    EXPECT_NEAR(differences, 512, 64) << cpu_kernels_at(set).name;
  }
}

}  // namespace
}  // namespace shardrec::compute
