// Where the optimizers' formulas would divide by zero.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/update_jobs.h"

namespace shardrec::compute {
namespace {

constexpr int64_t kWidth = 21;

// One row with equal columns: w, g, state.
struct Row {
  float w = 0;
  float g = 0;
  float m = 0;
  float v = 0;      // second matrix
  float state = 0;  // row value

  // After one step; all columns are equal again.
  Row after(const Kernels& kernels, const OptimizerStep& step, const float* sums = nullptr) const {
    std::vector<float> weights(kWidth, w);
    const std::vector<float> gradient(kWidth, g);
    std::vector<float> first(kWidth, m);
    std::vector<float> second(kWidth, v);
    Row out{.g = g, .state = state};
    float* const matrices[2] = {first.data(), second.data()};
    float* const states[1] = {&out.state};
    const float* pointer = gradient.data();
    const int64_t rows = 0;
    const int64_t run[2] = {0, 1};
    const uint32_t zero = 0;
    const ColumnRange all{0, kWidth};
    std::vector<std::byte> scratch = row_scratch(kWidth);
    kernels.row_update({.table = weights.data(),
                        .stride = kWidth,
                        .width = kWidth,
                        .rows = &rows,
                        .run = run,
                        .bags = &zero,
                        .gradients = &pointer,
                        .blocks = &zero,
                        .step = step,
                        .matrices = matrices,
                        .state = states,
                        .columns = &all,
                        .statistics = 1,
                        .sums = sums,
                        .statistic_columns = kWidth},
                       0, 1, scratch.data());
    out.w = weights[0];
    out.m = first[0];
    out.v = second[0];
    EXPECT_EQ(weights, std::vector<float>(kWidth, weights[0]));
    return out;
  }
};

template <class Test>
void in_every_set(const Test& test) {
  for (int set = 0; set < cpu_kernel_count(); ++set) {
    SCOPED_TRACE(cpu_kernels_at(set).name);
    test(cpu_kernels_at(set));
  }
}

TEST(Lamb, RatioIsOneForARowOfZeros) {
  in_every_set([](const Kernels& kernels) {
    OptimizerStep step = step_of(OptimizerKind::kLamb, WeightDecay::kDecouple);
    step.bias1 = 10;
    step.bias2 = 1000;
    // First step of g = 2: m^ = 2, v^ = 4, the direction is 1.
    EXPECT_NEAR(Row{.g = 2}.after(kernels, step).w, -step.learning_rate, 1e-7);
    step.kind = OptimizerKind::kPartialRowwiseLamb;
    EXPECT_NEAR(Row{.g = 2}.after(kernels, step).w, -step.learning_rate, 1e-7);
  });
}

TEST(Lamb, RatioIsOneWhereTheDirectionIsZero) {
  in_every_set([](const Kernels& kernels) {
    for (const OptimizerKind kind : {OptimizerKind::kLamb, OptimizerKind::kPartialRowwiseLamb}) {
      const OptimizerStep step = step_of(kind, WeightDecay::kNone);
      EXPECT_EQ(Row{.w = 3}.after(kernels, step).w, 3.0F);
    }
  });
}

TEST(Lamb, SquareOfTheDirectionThatCancelsBelowZeroCountsAsZero) {
  in_every_set([](const Kernels& kernels) {
    OptimizerStep step = step_of(OptimizerKind::kPartialRowwiseLamb, WeightDecay::kDecouple);
    step.bias1 = 1;
    step.bias2 = 1;
    step.beta2 = 1;
    step.one_minus_beta2 = 0;
    step.eps = 0;
    step.weight_decay = 1;
    // a = 1, R = 4 - 2 * 3 + 1 < 0: sums that only rounding makes.
    const float sums[4] = {0, 4, -3, 1};
    const Row row = Row{.w = 2, .m = 1, .state = 1}.after(kernels, step, sums);
    EXPECT_NEAR(row.w, 2 - 0.05 * (0.9 + 2), 1e-6);
  });
}

TEST(Lars, RateIsTheLearningRateForARowOfZeros) {
  in_every_set([](const Kernels& kernels) {
    const OptimizerStep step = step_of(OptimizerKind::kLarsSgd, WeightDecay::kL2);
    const Row row = Row{.g = 2, .m = 0.5F}.after(kernels, step);
    EXPECT_NEAR(row.m, 0.8 * 0.5 + 0.05 * 2, 1e-7);
    EXPECT_NEAR(row.w, -row.m, 1e-7);
  });
}

TEST(Lars, ZeroGradientWithoutDecayKeepsTheMomentumGoing) {
  in_every_set([](const Kernels& kernels) {
    const OptimizerStep step = step_of(OptimizerKind::kLarsSgd, WeightDecay::kNone);
    const Row row = Row{.w = 3, .m = 0.5F}.after(kernels, step);
    EXPECT_NEAR(row.m, 0.4, 1e-7);
    EXPECT_NEAR(row.w, 2.6, 1e-6);
  });
}

TEST(ZeroGradient, OfATouchedRowIsAStepLikeAnyOther) {
  in_every_set([](const Kernels& kernels) {
    for (const OptimizerStep& step : all_steps()) {
      const Row row = Row{.w = 3, .m = 0.5F, .v = 0.25F, .state = 0.25F}.after(kernels, step);
      EXPECT_TRUE(std::isfinite(row.w)) << name_of(step);
      const bool decays = step.decay_mode != WeightDecay::kNone;
      const bool moves = step.kind != OptimizerKind::kSgd && step.kind != OptimizerKind::kAdagrad &&
                         step.kind != OptimizerKind::kRowwiseAdagrad;
      EXPECT_EQ(row.w != 3.0F, decays || moves) << name_of(step);
    }
  });
}

TEST(ZeroGradient, OfAFreshRowIsNoNan) {
  in_every_set([](const Kernels& kernels) {
    for (const OptimizerStep& step : all_steps()) {
      EXPECT_EQ(Row{}.after(kernels, step).w, 0.0F) << name_of(step);
    }
  });
}

TEST(Optimizers, AcceptTheWeightDecaysOfTheDesign) {
  int accepted = 0;
  for (size_t kind = 0; kind < kOptimizerKinds; ++kind) {
    for (const WeightDecay mode : {WeightDecay::kNone, WeightDecay::kL2, WeightDecay::kDecouple}) {
      accepted += accepts(static_cast<OptimizerKind>(kind), mode) ? 1 : 0;
    }
  }
  EXPECT_EQ(accepted, 3 * 3 + 5 * 2);
  EXPECT_FALSE(accepts(OptimizerKind::kAdam, WeightDecay::kL2));
  EXPECT_FALSE(accepts(OptimizerKind::kLamb, WeightDecay::kL2));
  EXPECT_FALSE(accepts(OptimizerKind::kLarsSgd, WeightDecay::kDecouple));
}

}  // namespace
}  // namespace shardrec::compute
