// The scale of gradients of stacks in float16 on the CPU.
#include <gtest/gtest.h>

#include <limits>

#include "compute/math/bias_correction.h"
#include "dense/loss_scale_checks.h"

namespace shardrec::dense {
namespace {

constexpr device::ContextOptions kHere{};

TEST(LossScale, IsAPowerOfTwo) {
  for (const double scale : {1.0, 2.0, 65536.0, 0x1p24}) EXPECT_TRUE(is_loss_scale(scale)) << scale;
  for (const double wrong : {0.0, -1.0, 0.5, 3.0, 0x1p24 + 1, 0x1p25, HUGE_VAL,
                             std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_FALSE(is_loss_scale(wrong)) << wrong;
  }
}

TEST(LossScale, FollowsTheGradients) { test::check_that_the_scale_follows_gradients(kHere); }
TEST(LossScale, StaysBetweenItsBounds) { test::check_the_bounds_of_the_scale(kHere); }
TEST(LossScale, ASkippedStepChangesNothing) { test::check_skipped_steps(kHere); }
TEST(LossScale, OneOverflowSkipsAnAccumulatedStep) { test::check_accumulated_overflows(kHere); }
TEST(LossScale, KeepsGradientsThatFloat16DoesNotHave) { test::check_what_the_scale_is_for(kHere); }
TEST(LossScale, AllRanksSkipTheStepOfOne) { test::check_that_all_ranks_skip({kHere, kHere}); }

// An overflow would be stepped into the parameters.
TEST(LossScale, ASetThatStepsLooksForNaNs) {
  struct {
    shardrec_non_finite non_finite;
    bool steps, in_backward, is_refused;
  } const sets[] = {{SHARDREC_NON_FINITE_ALLOW, true, false, true},
                    {SHARDREC_NON_FINITE_ALLOW, true, true, true},
                    {SHARDREC_NON_FINITE_ALLOW, false, false, false},
                    {SHARDREC_NON_FINITE_ERROR, true, false, false},
                    {SHARDREC_NON_FINITE_SKIP, true, false, false}};
  for (const auto& set : sets) {
    const auto errors = comm::run_ranks(1, [&](comm::Communicator& communicator) {
      const test::Scaled scaled{.scale = {.scale = 8}};
      const std::shared_ptr<Mlp> mlp = test::make_scaled(test::small_stack(), scaled);
      DdpOptions options;
      options.non_finite = set.non_finite;
      options.step_in_backward = set.in_backward;
      const auto ddp = std::make_shared<Ddp>(
          std::shared_ptr<comm::Communicator>(&communicator, [](comm::Communicator*) {}), options);
      add_layers(ddp, "stack.", mlp);
      if (set.steps) ddp->set_optimizer(scaled.optimizer);
      ddp->commit();
    });
    EXPECT_EQ(errors[0].has_value(), set.is_refused);
    if (!errors[0]) continue;
    EXPECT_EQ(errors[0]->status(), SHARDREC_UNSUPPORTED) << errors[0]->sentence();
  }
}

TEST(LossScale, ThatIsConstantIsNotThatOfACheckpoint) {
  for (const int64_t steps : {0, 5}) {
    const auto mlp =
        test::make_scaled(test::small_stack(), test::Scaled{.scale = {.scale = 8, .steps = steps}});
    mlp->set_loss_scale({.scale = 32, .finite_backwards = 2});
    EXPECT_EQ(mlp->loss_scale().scale, steps == 0 ? 8 : 32);
  }
}

// An input gradient that float16 has no part in may overflow all the same.
TEST(LossScale, LooksAtTheGradientOfTheInputToo) {
  auto mlp =
      test::make_scaled({"dropout", 2, {test::dropout(0.5)}}, test::Scaled{.scale = {.scale = 8}});
  test::Samples samples(*mlp, 5);
  samples.train(*mlp);
  test::expect_scale(*mlp, 8, 1);
  samples.dy.at(1, 0) = samples.dy.at(1, 1) = INFINITY;
  for (int64_t r = 0; r < 5; ++r) samples.dy.at(r, 0) = INFINITY;
  samples.train(*mlp);
  test::expect_scale(*mlp, 4, 0);
}

TEST(BiasCorrection, IsOneOverWhatAMomentIsShortOf) {
  for (const double beta : {0.0, 0.5, 0.9, 0.999, 0.999999}) {
    for (const int64_t step : {1, 2, 3, 10, 1000, 1000003}) {
      const double exact = 1 / (1 - std::pow(beta, static_cast<double>(step)));
      EXPECT_NEAR(compute::math::bias_correction(beta, step), exact, 0x1p-23 * exact) << step;
    }
  }
}

}  // namespace
}  // namespace shardrec::dense
