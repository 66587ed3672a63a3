#include "dense/gradient_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "core/threads.h"
#include "dense/reference.h"

namespace shardrec::dense {
namespace {

using Gradients = std::vector<std::vector<float>>;

GradientNorm norm_of(Gradients& gradients) {
  GradientNorm norm;
  for (auto& gradient : gradients) {
    norm.add({.data = gradient.data(),
              .size = static_cast<int64_t>(gradient.size()),
              .dtype = SHARDREC_FLOAT32});
  }
  return norm;
}

// The L2 norm before all are scaled down to bound.
double clip(Gradients& gradients, double bound, core::Threads& threads) {
  GradientNorm norm = norm_of(gradients);
  const double before = norm.l2(threads);
  norm.bound_norm(before, bound, threads);
  return before;
}

Gradients some(unsigned seed = 7) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Gradients gradients;
  for (const size_t size : {40000U, 3U, 0U, 16384U, 17U, 20001U}) {
    gradients.emplace_back(size);
    for (float& value : gradients.back()) value = normal(random);
  }
  return gradients;
}

TEST(GradientNorm, IsTheRootOfTheSumOfAllSquares) {
  core::Threads threads(2);
  Gradients gradients = some();
  long double sum = 0;
  for (const auto& gradient : gradients) {
    for (const float value : gradient) sum += static_cast<long double>(value) * value;
  }
  const auto expected = static_cast<double>(std::sqrt(sum));
  EXPECT_NEAR(norm_of(gradients).l2(threads), expected, 1e-14 * expected);
  EXPECT_EQ(GradientNorm().l2(threads), 0);
}

TEST(GradientNorm, HasTheSameBitsForAnyThreadsAndInstructionSet) {
  Gradients gradients = some();
  core::Threads one(1);
  const double expected = norm_of(gradients).l2(one);
  for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
    compute::force_cpu_kernels(&compute::cpu_kernels_at(set));
    for (const int width : {1, 2, 3, 5}) {
      core::Threads threads(width);
      EXPECT_EQ(norm_of(gradients).l2(threads), expected)
          << compute::cpu_kernels_at(set).name << " " << width;
    }
  }
  compute::force_cpu_kernels(nullptr);
}

TEST(GradientNorm, NeitherOverflowsNorLosesSmallNumbers) {
  core::Threads threads(1);
  Gradients large = {std::vector<float>(100, 3e38F)};
  EXPECT_NEAR(norm_of(large).l2(threads), 10 * 3.0e38, 1e32);
  Gradients small = {std::vector<float>(100, 1e-30F)};
  EXPECT_NEAR(norm_of(small).l2(threads), 1e-29, 1e-35);
}

TEST(GradientNorm, ClipsAsPyTorchDoes) {
  core::Threads threads(1);
  Gradients gradients = {{3}, {4}};
  EXPECT_EQ(clip(gradients, 1, threads), 5);
  const auto factor = static_cast<float>(1 / (5 + 1e-6));
  EXPECT_EQ(gradients, (Gradients{{3 * factor}, {4 * factor}}));
  EXPECT_EQ(clip(gradients, 0, threads), std::hypot(double{3 * factor}, 4 * factor));
  EXPECT_EQ(gradients, (Gradients{{0}, {0}}));
}

TEST(GradientNorm, LeavesGradientsWithinTheBoundAsTheyAre) {
  core::Threads threads(2);
  Gradients gradients = some();
  const Gradients before = gradients;
  const double norm = norm_of(gradients).l2(threads);
  EXPECT_EQ(clip(gradients, norm * 1.01, threads), norm);
  EXPECT_EQ(gradients, before);
  EXPECT_EQ(clip(gradients, norm * 0.5, threads), norm);
  EXPECT_NEAR(norm_of(gradients).l2(threads), norm * 0.5, 1e-6 * norm);
}

TEST(GradientNorm, ANormThatIsNotFiniteIsReturnedAndNothingIsScaled) {
  core::Threads threads(2);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Gradients gradients = some();
    gradients[5][20000] = bad;
    const Gradients before = gradients;
    const double norm = clip(gradients, 1e-3, threads);
    EXPECT_EQ(std::isnan(norm), std::isnan(bad));
    EXPECT_FALSE(std::isfinite(norm));
    for (size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_TRUE(test::same_bits(gradients[i], before[i]));
    }
  }
}

TEST(GradientNorm, OfFloat64NeitherOverflowsNorUnderflows) {
  core::Threads threads(1);
  for (const double size : {1e-320, 1e-200, 1.0, 1e200, 1e307}) {
    std::vector<double> gradient = {3 * size, -4 * size};
    GradientNorm norm;
    norm.add({.data = gradient.data(), .size = 2, .dtype = SHARDREC_FLOAT64});
    EXPECT_NEAR(norm.l2(threads) / size, 5, size < 1e-300 ? 0.01 : 1e-14) << size;
    EXPECT_EQ(norm.infinity(threads), 4 * size);
  }
}

TEST(GradientNorm, OfInfinityIsTheLargestMagnitudeAndNaNWins) {
  core::Threads threads(3);
  Gradients gradients = some();
  gradients[3][16000] = -77;
  EXPECT_EQ(norm_of(gradients).infinity(threads), 77);
  EXPECT_EQ(GradientNorm().infinity(threads), 0);
  gradients[0][39999] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(norm_of(gradients).infinity(threads), std::numeric_limits<double>::infinity());
  gradients[4][3] = -std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(norm_of(gradients).infinity(threads)));
}

TEST(GradientNorm, BoundsValuesAndLeavesNaN) {
  core::Threads threads(1);
  const float inf = std::numeric_limits<float>::infinity();
  Gradients gradients = {{3, -0.25F, -inf, inf, -3}, {std::nanf("")}};
  norm_of(gradients).bound_values(0.5, threads);
  EXPECT_EQ(gradients[0], (std::vector<float>{0.5F, -0.25F, -0.5F, 0.5F, -0.5F}));
  EXPECT_TRUE(std::isnan(gradients[1][0]));
}

}  // namespace
}  // namespace shardrec::dense
