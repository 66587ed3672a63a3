// The optimizers of the layers against the formulas in double.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "compute/update_jobs.h"
#include "core/threads.h"
#include "dense/kernels.h"
#include "dense/optimizer_reference.h"
#include "dense/parameters.h"
#include "dense/reference.h"
#include "plan/model/optimizer_step.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kElementsOfAll = 1003;
constexpr auto kKinds =
    std::to_array({SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD,
                   SHARDREC_OPTIMIZER_ADAGRAD, SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB});

void run(plan::Optimizer optimizer) {
  core::Threads threads(2);
  Parameters parameters(optimizer);
  parameters.append(
      {{.name = "w", .shape = {kElementsOfAll}, .offset = 0, .size = kElementsOfAll}});
  std::mt19937 random(17);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < kElementsOfAll; ++i) parameters.values()[i] = normal(random);
  test::OptimizerReference reference{optimizer,
                                     {parameters.values(), parameters.values() + kElementsOfAll}};
  for (int t = 1; t <= 20; ++t) {
    for (int64_t i = 0; i < kElementsOfAll; ++i) parameters.gradients()[i] = normal(random);
    reference.step({parameters.gradients(), kElementsOfAll}, t);
    parameters.step(threads);
  }
  EXPECT_EQ(parameters.steps(), 20);
  test::expect_near({parameters.values(), kElementsOfAll}, reference.w, 3e-6, "weights");
  const size_t states = state_names(optimizer.kind).size();
  if (states > 0)
    test::expect_near({parameters.state(0), kElementsOfAll}, reference.first, 3e-6, "state 0");
  if (states > 1)
    test::expect_near({parameters.state(1), kElementsOfAll}, reference.second, 3e-6, "state 1");
}

TEST(Optimizer, TwentyStepsEqualTheFormulaInDouble) {
  for (const auto kind : kKinds) {
    for (const auto decay :
         {SHARDREC_WEIGHT_DECAY_NONE, SHARDREC_WEIGHT_DECAY_L2, SHARDREC_WEIGHT_DECAY_DECOUPLE}) {
      for (const double clamp : {0.0, 0.5}) {
        SCOPED_TRACE(testing::Message()
                     << "optimizer " << kind << " decay " << decay << " clamp " << clamp);
        run({.kind = kind,
             .learning_rate = 0.05,
             .eps = 1e-6,
             .weight_decay = decay == SHARDREC_WEIGHT_DECAY_NONE ? 0 : 0.1,
             .weight_decay_mode = decay,
             .max_gradient = clamp});
      }
    }
  }
}

TEST(Optimizer, AZeroGradientWithZeroEpsDoesNotTouchSgd) {
  core::Threads threads(1);
  Parameters parameters({.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 0.5});
  parameters.append({{.name = "w", .shape = {3}, .offset = 0, .size = 3}});
  parameters.values()[1] = 2;
  parameters.gradients()[2] = 4;
  parameters.step(threads);
  EXPECT_EQ(parameters.values()[0], 0);
  EXPECT_EQ(parameters.values()[1], 2);
  EXPECT_EQ(parameters.values()[2], -2);
}

TEST(Optimizer, ALearningRateSetBetweenStepsHoldsFromTheNextOne) {
  core::Threads threads(1);
  Parameters parameters({.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1});
  parameters.append({{.name = "w", .shape = {1}, .offset = 0, .size = 1}});
  parameters.gradients()[0] = 1;
  parameters.step(threads);
  parameters.set_learning_rate(0.25);
  parameters.step(threads);
  EXPECT_EQ(parameters.values()[0], -1.25F);
}

TEST(Optimizer, MaxGradientKeepsNotANumber) {
  core::Threads threads(1);
  Parameters parameters({.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1, .max_gradient = 1});
  parameters.append({{.name = "w", .shape = {20}, .offset = 0, .size = 20}});
  for (int i = 0; i < 20; ++i) parameters.gradients()[i] = i % 2 == 0 ? NAN : -5.0F;
  parameters.step(threads);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(i % 2 == 0 ? std::isnan(parameters.values()[i]) : parameters.values()[i] == 1) << i;
  }
}

// A row of a table and parameters of a layer, with the same gradients.
void expect_bits_of_tables() {
  constexpr int64_t kWidth = 37;
  for (const auto kind : kKinds) {
    if (kind == SHARDREC_OPTIMIZER_MOMENTUM_SGD) continue;  // tables have none
    for (const auto decay :
         {SHARDREC_WEIGHT_DECAY_NONE, SHARDREC_WEIGHT_DECAY_L2, SHARDREC_WEIGHT_DECAY_DECOUPLE}) {
      // Tables have neither Adam nor LAMB with it.
      const bool moments = kind == SHARDREC_OPTIMIZER_ADAM || kind == SHARDREC_OPTIMIZER_LAMB;
      if (moments && decay == SHARDREC_WEIGHT_DECAY_L2) continue;
      const plan::Optimizer optimizer{.kind = kind,
                                      .learning_rate = 0.05,
                                      .eps = 1e-6,
                                      .weight_decay = 0.1,
                                      .weight_decay_mode = decay};
      core::Threads threads(2);
      Parameters parameters(optimizer);
      parameters.append({{.name = "w", .shape = {kWidth}, .offset = 0, .size = kWidth}});
      std::mt19937 random(3);
      std::normal_distribution<float> normal;
      for (int64_t i = 0; i < kWidth; ++i) parameters.values()[i] = normal(random);
      std::vector<float> row(parameters.values(), parameters.values() + kWidth);
      std::vector<float> m(kWidth);
      std::vector<float> v(kWidth);
      float* const matrices[] = {m.data(), v.data()};
      const compute::ColumnRange columns{0, kWidth};
      const int64_t rows[] = {0};
      const int64_t run[] = {0, 1};
      const uint32_t bags[] = {0};
      const float* const gradients[] = {parameters.gradients()};
      std::vector<std::byte> scratch(compute::row_update_scratch_bytes(kWidth) + 64);
      void* aligned = scratch.data();
      size_t left = scratch.size();
      std::align(64, compute::row_update_scratch_bytes(kWidth), aligned, left);
      for (int step = 1; step <= 5; ++step) {
        for (int64_t i = 0; i < kWidth; ++i) parameters.gradients()[i] = normal(random);
        compute::RowUpdate job{.table = row.data(),
                               .stride = kWidth,
                               .width = kWidth,
                               .rows = rows,
                               .run = run,
                               .bags = bags,
                               .gradients = gradients,
                               .blocks = bags,
                               .matrices = matrices,
                               .columns = &columns,
                               .statistics = 1};
        job.step = plan::optimizer_step(optimizer, step);
        compute::cpu_kernels().row_update(job, 0, 1, static_cast<std::byte*>(aligned));
        parameters.step(threads);
        const std::vector<float> values(parameters.values(), parameters.values() + kWidth);
        EXPECT_TRUE(test::same_bits(row, values))
            << "optimizer " << kind << " decay " << decay << " step " << step;
      }
    }
  }
}

TEST(Optimizer, HasTheBitsOfTheTablesInAllInstructionSets) {
  for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
    SCOPED_TRACE(compute::cpu_kernels_at(set).name);
    compute::force_cpu_kernels(&compute::cpu_kernels_at(set));
    expect_bits_of_tables();
  }
  compute::force_cpu_kernels(nullptr);
}

TEST(Kernels, ElementwiseKernelsGiveTheSameBitsInAllInstructionSets) {
  constexpr int64_t kRows = 3, kCols = 37, kAll = kRows * kCols;
  std::vector<float> expected;
  double expected_square_sum = 0;
  for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
    compute::force_cpu_kernels(&compute::cpu_kernels_at(set));
    const Kernels& table = kernels();
    ASSERT_STREQ(table.name, compute::cpu_kernels_at(set).name);
    std::mt19937 random(9);
    std::normal_distribution<float> normal;
    std::vector<float> w(kAll), g(kAll), first(kAll), second(kAll), y(kAll), bias(kCols),
        sums(kCols);
    for (auto* values : {&w, &g, &y, &bias}) {
      for (float& value : *values) value = normal(random);
    }
    compute::ElementUpdate update{.weights = w.data(),
                                  .gradients = g.data(),
                                  .max_gradient = 1,
                                  .matrices = {first.data(), second.data()}};
    const compute::Kernels& elements = compute::cpu_kernels();
    std::vector<float> totals;
    for (const auto kind : {compute::OptimizerKind::kSgd, compute::OptimizerKind::kAdagrad,
                            compute::OptimizerKind::kMomentumSgd, compute::OptimizerKind::kAdam,
                            compute::OptimizerKind::kLamb}) {
      for (const auto decay : {compute::WeightDecay::kNone, compute::WeightDecay::kL2,
                               compute::WeightDecay::kDecouple}) {
        update.step = compute::step_of(kind, decay);
        elements.element_sums(update, 1, kAll - 1, update.sums);
        totals.insert(totals.end(), std::begin(update.sums), std::end(update.sums));
        elements.element_update(update, 1, kAll - 1);
      }
    }
    table.bias_activation(y.data(), kCols, kRows, kCols, bias.data(), false);
    table.bias_activation(y.data(), kCols, kRows, kCols, bias.data(), true);
    table.relu_backward(y.data(), kCols, g.data(), kCols, g.data(), kCols, kRows, kCols);
    table.column_sums(g.data(), kCols, kRows, kCols, sums.data());
    const double square_sum = table.square_sum(y.data(), kAll - 2);
    table.scale(y.data(), 0.3F, kAll - 2);
    // Exact squares in double: the order of the sum is all that could differ.
    if (set == 0) expected_square_sum = square_sum;
    EXPECT_EQ(square_sum, expected_square_sum) << table.name;
    std::vector<float> all = w;
    for (const auto* values : {&g, &first, &second, &sums, &y, &totals}) {
      all.insert(all.end(), values->begin(), values->end());
    }
    if (set == 0) expected = all;
    EXPECT_TRUE(test::same_bits(expected, all)) << table.name;
  }
  compute::force_cpu_kernels(nullptr);
}

}  // namespace
}  // namespace shardrec::dense
