// Sums over columns of every set: what row_sums hands to other owners of columns.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/reference.h"
#include "compute/update_jobs.h"

namespace shardrec::compute {
namespace {

std::vector<OptimizerStep> steps_with_sums() {
  std::vector<OptimizerStep> steps = all_steps();
  std::erase_if(steps, [](const OptimizerStep& s) { return state_needs(s.kind).sums == 0; });
  return steps;
}

UpdateShape ranged_shape(Random& random, int64_t width, const OptimizerStep& step,
                         Numbers numbers) {
  UpdateShape shape = random_shape(random, width, step, numbers);
  shape.given = false;
  return shape;
}

// row_sums in two calls.
std::vector<float> sums_of(Random& random, const Kernels& kernels, const RowUpdate& view,
                           const std::vector<ColumnRange>& ranges, int64_t unique) {
  const auto count = static_cast<int>(ranges.size());
  const int needs = state_needs(view.step.kind).sums;
  std::vector<float> sums(static_cast<size_t>(unique * count * needs), -1.0F);
  std::vector<std::byte> scratch = row_scratch(view.width);
  const int64_t cut = uniform(random, 0, unique);
  kernels.row_sums(view, ranges.data(), count, sums.data(), 0, cut, scratch.data());
  kernels.row_sums(view, ranges.data(), count, sums.data(), cut, unique, scratch.data());
  return sums;
}

TEST(RowSums, AreTheSumsOfTheFormulasInEverySetAndChangeNothing) {
  Random random(25);
  for (const OptimizerStep& step : steps_with_sums()) {
    const auto needs = static_cast<size_t>(state_needs(step.kind).sums);
    const Reference reference(step);
    for (int64_t width = 1; width <= 130; ++width) {
      const Numbers numbers = width % 3 == 0 ? Numbers::kSpecial : Numbers::kOrdinary;
      const UpdateShape shape = ranged_shape(random, width, step, numbers);
      UpdateJob job(random, shape);
      const RowUpdate view = job.view();
      std::vector<float> expected;
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        const Kernels& kernels = cpu_kernels_at(set);
        const std::vector<float> sums = sums_of(random, kernels, view, job.columns(), shape.unique);
        ASSERT_TRUE(same_bits(job.now, job.start())) << "nothing is updated";
        if (set == 0) expected = sums;
        ASSERT_TRUE(same_bits(sums, expected))
            << kernels.name << " " << name_of(step) << " width " << width;
      }
      if (numbers == Numbers::kSpecial) continue;
      for (int64_t u = 0; u < shape.unique; ++u) {
        for (size_t s = 0; s < job.columns().size(); ++s) {
          const std::vector<Bounded> sums =
              reference.sums(range_before(job, view, u, job.columns()[s], s));
          for (size_t k = 0; k < needs; ++k) {
            const size_t at = (static_cast<size_t>(u) * job.columns().size() + s) * needs + k;
            ASSERT_TRUE(sums[k].holds(expected[at])) << name_of(step) << " sum " << k;
          }
        }
      }
    }
  }
}

TEST(RowSums, GivenBackToTheUpdateMakeTheStepThatItTakesOnItsOwn) {
  Random random(27);
  for (const OptimizerStep& step : steps_with_sums()) {
    for (int64_t width = 1; width <= 130; width += 3) {
      UpdateShape shape = ranged_shape(random, width, step, Numbers::kOrdinary);
      shape.ranges = 1;
      UpdateJob job(random, shape);
      std::vector<std::byte> scratch = row_scratch(width);
      for (int set = 0; set < cpu_kernel_count(); ++set) {
        const Kernels& kernels = cpu_kernels_at(set);
        kernels.row_update(job.view(), 0, shape.unique, scratch.data());
        const Tensors own = job.now;
        RowUpdate view = job.view();
        const std::vector<float> sums = sums_of(random, kernels, view, job.columns(), shape.unique);
        view.sums = sums.data();
        view.statistic_columns = width;
        kernels.row_update(view, 0, shape.unique, scratch.data());
        ASSERT_TRUE(same_bits(job.now, own))
            << kernels.name << " " << name_of(step) << " width " << width;
      }
    }
  }
}

TEST(RowSums, OfPartsAddUpToThoseOfTheWholeRow) {
  Random random(28);
  for (const OptimizerStep& step : steps_with_sums()) {
    const auto needs = static_cast<size_t>(state_needs(step.kind).sums);
    UpdateShape shape = ranged_shape(random, 96, step, Numbers::kOrdinary);
    UpdateJob job(random, shape);
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      const RowUpdate view = job.view();
      const std::vector<float> whole =
          sums_of(random, cpu_kernels_at(set), view, {{0, 96}}, shape.unique);
      const std::vector<float> parts =
          sums_of(random, cpu_kernels_at(set), view, {{0, 7}, {7, 40}, {40, 96}}, shape.unique);
      for (size_t u = 0; u < static_cast<size_t>(shape.unique); ++u) {
        for (size_t k = 0; k < needs; ++k) {
          const float* part = parts.data() + u * 3 * needs + k;
          const float sizes =
              std::fabs(part[0]) + std::fabs(part[needs]) + std::fabs(part[2 * needs]);
          EXPECT_NEAR(part[0] + part[needs] + part[2 * needs], whole[u * needs + k],
                      2e-5F * (sizes + 1))
              << name_of(step);
        }
      }
    }
  }
}

TEST(RowGradients, AreTheGradientSumsAndNothingBehindThem) {
  Random random(29);
  for (int64_t width = 1; width <= 130; ++width) {
    const UpdateShape shape = random_shape(
        random, width, step_of(OptimizerKind::kSgd, WeightDecay::kNone), Numbers::kOrdinary);
    UpdateJob job(random, shape);
    const RowUpdate view = job.view();
    std::vector<std::byte> scratch = row_scratch(width);
    std::vector<float> expected;
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      std::vector<float> out(static_cast<size_t>(shape.unique * width) + 1, -7.0F);
      const int64_t cut = uniform(random, 0, shape.unique);
      cpu_kernels_at(set).row_gradients(view, out.data(), cut, shape.unique, scratch.data());
      cpu_kernels_at(set).row_gradients(view, out.data(), 0, cut, scratch.data());
      EXPECT_EQ(out.back(), -7.0F);
      if (set == 0) expected = out;
      ASSERT_TRUE(same_bits(out, expected)) << cpu_kernels_at(set).name << " width " << width;
    }
    for (int64_t u = 0; u < shape.unique; ++u) {
      const std::vector<Bounded> sums = gradient_of(view, u, {0, width});
      for (size_t c = 0; c < sums.size(); ++c) {
        ASSERT_TRUE(sums[c].holds(expected[static_cast<size_t>(u * width) + c]));
      }
    }
  }
}

TEST(RowGradients, AppliedAsOneOccurrenceGiveTheBitsOfTheUpdateItself) {
  Random random(30);
  for (const OptimizerStep& step : all_steps()) {
    UpdateShape shape = random_shape(random, uniform(random, 1, 130), step, Numbers::kOrdinary);
    UpdateJob job(random, shape);
    std::vector<std::byte> scratch = row_scratch(shape.width);
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      const Kernels& kernels = cpu_kernels_at(set);
      kernels.row_update(job.view(), 0, shape.unique, scratch.data());
      const Tensors direct = job.now;
      RowUpdate view = job.view();
      std::vector<float> sums(static_cast<size_t>(shape.unique * shape.width));
      kernels.row_gradients(view, sums.data(), 0, shape.unique, scratch.data());
      std::vector<const float*> gradients;
      std::vector<uint32_t> bags;
      std::vector<int64_t> run = {0};
      for (int64_t u = 0; u < shape.unique; ++u) {
        gradients.push_back(sums.data() + u * shape.width);
        bags.push_back(static_cast<uint32_t>(u));
        run.push_back(u + 1);
      }
      const std::vector<uint32_t> blocks(bags.size(), 0);
      view.gradients = gradients.data();
      view.bags = bags.data();
      view.run = run.data();
      view.blocks = blocks.data();
      view.weights = nullptr;
      view.gradient_scale = 1;
      kernels.row_update(view, 0, shape.unique, scratch.data());
      ASSERT_TRUE(same_bits(job.now, direct)) << kernels.name << " " << name_of(step);
    }
  }
}

TEST(RowSums, LanesAreColumnsMod16CountedFromTheRangeAndAddedAsATree) {
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
