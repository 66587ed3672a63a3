// Layers of all kinds: numbers against double references, finite differences, and the same bits for any
// number of threads and any instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "dense/layer_reference.h"
#include "dense/layer_stacks.h"

namespace shardrec::dense {
namespace {

using test::ReferenceStack;
using test::Rows;
using test::same_bits;
using test::StackOf;
using test::stacks;
using test::Values;

constexpr uint64_t kSeed = 7;

Values row_of(Rows& rows, int64_t row) {
  Values values;
  for (int64_t c = 0; c < rows.cols(); ++c) values.push_back(rows.at(row, c));
  return values;
}

std::vector<float> floats(const float* from, int64_t count) { return {from, from + count}; }

// Samples, their output and gradients, with a gap behind each row.
struct Batch {
  Batch(const Mlp& mlp, int64_t size, int64_t gap = 0)
      : input(size, mlp.inputs(), gap),
        output(size, mlp.outputs(), gap),
        dy(size, mlp.outputs(), gap),
        dx(size, mlp.inputs(), gap) {
    std::mt19937 random(static_cast<unsigned>(size + 1));
    input.fill(random);
    dy.fill(random);
  }
  void train(Mlp& mlp) {
    mlp.forward(input.view(), output.view());
    mlp.backward(dy.view(), dx.view());
  }
  Rows input, output, dy, dx;
};

void expect_reference(const StackOf& of, int64_t size, int64_t gap, bool training) {
  SCOPED_TRACE(of.name + ", batch " + std::to_string(size) + (training ? "" : ", evaluation"));
  auto mlp = test::make(of);
  mlp->set_training(training);
  Batch batch(*mlp, size, gap);
  batch.train(*mlp);

  ReferenceStack reference(*mlp);
  reference.dropout = {.seed = kSeed, .forward = training ? 0 : -1};
  Values output, dx;
  for (int64_t s = 0; s < size; ++s) {
    const Values x = row_of(batch.input, s);
    const Values y = reference.run(x, s).back();
    output.insert(output.end(), y.begin(), y.end());
    const Values d = reference.backward(x, s, row_of(batch.dy, s));
    dx.insert(dx.end(), d.begin(), d.end());
  }
  // Layer norm of a single column divides what is left of nothing by sqrt(epsilon).
  test::expect_near(batch.output.values(), output, 2e-5, "output");
  test::expect_near(batch.dx.values(), dx, 6e-5, "input gradient");
  const double tolerance = 2e-5 * std::sqrt(static_cast<double>(size) + 1);
  for (const ParameterInfo& info : mlp->parameters().infos()) {
    const auto gradient = floats(mlp->parameters().gradients(info.offset), info.size);
    test::expect_near(gradient, reference.gradients.at(info.name), tolerance, info.name.c_str());
  }
  EXPECT_TRUE(batch.output.gaps_untouched() && batch.dx.gaps_untouched());
}

TEST(LayerKinds, ForwardAndBackwardEqualTheDoubleReference) {
  for (const StackOf& of : stacks()) {
    for (const int64_t size : {0, 1, 7, 65, 200}) expect_reference(of, size, size % 3, true);
    expect_reference(of, 7, 0, false);
  }
}

TEST(LayerKinds, LargeBatchesWhoseRowsAreCutInChunksEqualTheReference) {
  expect_reference(stacks().back(), 2500, 1, true);
}

// Central differences of sum(output * dy) in double.
TEST(LayerKinds, GradientsEqualFiniteDifferences) {
  for (const StackOf& of : stacks()) {
    SCOPED_TRACE(of.name);
    auto mlp = test::make(of);
    Batch batch(*mlp, 3);
    batch.train(*mlp);
    ReferenceStack reference(*mlp);
    reference.dropout = {.seed = kSeed, .forward = 0};
    std::vector<Values> inputs;
    for (int64_t s = 0; s < 3; ++s) inputs.push_back(row_of(batch.input, s));
    const auto slope = [&](double& number) {
      const auto objective = [&](double at) {
        const double before = std::exchange(number, at);
        double sum = 0;
        for (int64_t s = 0; s < 3; ++s) {
          const Values y = reference.run(inputs[static_cast<size_t>(s)], s).back();
          const Values dy = row_of(batch.dy, s);
          for (size_t o = 0; o < y.size(); ++o) sum += y[o] * dy[o];
        }
        number = before;
        return sum;
      };
      constexpr double kStep = 1e-6;
      return (objective(number + kStep) - objective(number - kStep)) / (2 * kStep);
    };
    const auto expect_slope = [&](float value, double& number, const std::string& what) {
      const double expected = slope(number);
      EXPECT_NEAR(value, expected, 1e-4 * std::max(1.0, std::fabs(expected))) << what;
    };
    for (const ParameterInfo& info : mlp->parameters().infos()) {
      const float* gradient = mlp->parameters().gradients(info.offset);
      for (int64_t i = 0; i < info.size; i += std::max<int64_t>(1, info.size / 9)) {
        expect_slope(gradient[i], reference.values.at(info.name)[static_cast<size_t>(i)],
                     info.name + " " + std::to_string(i));
      }
    }
    for (int64_t c = 0; c < of.inputs; c += std::max<int64_t>(1, of.inputs / 9)) {
      expect_slope(batch.dx.at(1, c), inputs[1][static_cast<size_t>(c)],
                   "input " + std::to_string(c));
    }
  }
}

// Outputs, input gradients and parameters after steps.
std::vector<float> bits_of_steps(const StackOf& of, int64_t size, int threads) {
  auto mlp = test::make(
      of, {.optimizer = {.kind = SHARDREC_OPTIMIZER_ADAM}, .seed = kSeed, .threads = threads});
  Batch batch(*mlp, size);
  for (int step = 0; step < 3; ++step) {
    batch.train(*mlp);
    mlp->step();
  }
  std::vector<float> all = batch.output.values();
  const std::vector<float> gradient = batch.dx.values();
  all.insert(all.end(), gradient.begin(), gradient.end());
  const auto parameters = floats(mlp->parameters().values(), mlp->parameters().size());
  all.insert(all.end(), parameters.begin(), parameters.end());
  return all;
}

TEST(LayerKinds, BitsDoNotDependOnTheNumberOfThreads) {
  for (const StackOf& of : stacks()) {
    for (const int64_t size : {1, 7, 300, 2500}) {
      EXPECT_TRUE(same_bits(bits_of_steps(of, size, 1), bits_of_steps(of, size, 3)))
          << of.name << " " << size;
    }
  }
}

TEST(LayerKinds, AllInstructionSetsGiveTheSameBits) {
  for (const StackOf& of : stacks()) {
    compute::force_cpu_kernels(&compute::cpu_kernels_at(0));
    const std::vector<float> expected = bits_of_steps(of, 67, 2);
    for (int set = 1; set < compute::cpu_kernel_count(); ++set) {
      compute::force_cpu_kernels(&compute::cpu_kernels_at(set));
      ASSERT_STREQ(kernels().name, compute::cpu_kernels_at(set).name);
      EXPECT_TRUE(same_bits(expected, bits_of_steps(of, 67, 2)))
          << of.name << " " << kernels().name;
    }
    compute::force_cpu_kernels(nullptr);
  }
}

TEST(LayerKinds, BackwardWithoutInputGradientGivesTheSameParameterGradients) {
  for (const StackOf& of : stacks()) {
    auto mlp = test::make(of);
    Batch batch(*mlp, 70);
    batch.train(*mlp);
    const auto size = mlp->parameters().size();
    const auto with = floats(mlp->parameters().gradients(), size);
    std::fill_n(mlp->parameters().gradients(), size, 99.0F);
    mlp->backward(batch.dy.view(), {});
    EXPECT_TRUE(same_bits(with, floats(mlp->parameters().gradients(), size))) << of.name;
  }
}

TEST(LayerKinds, AccumulatedGradientsAreTheSumOverMicroBatchesInCallOrder) {
  for (const StackOf& of : stacks()) {
    auto alone = test::make(of);
    auto added = test::make(of, {.seed = kSeed, .threads = 2, .accumulate = true});
    const auto size = static_cast<size_t>(added->parameters().size());
    std::vector<float> sum(size, 0);
    for (const int64_t rows : {65, 0, 1500, 1}) {
      Batch batch(*alone, rows);
      batch.train(*alone);
      for (size_t i = 0; i < size; ++i) sum[i] += alone->parameters().gradients()[i];
      batch.train(*added);
    }
    EXPECT_TRUE(same_bits(sum, {added->parameters().gradients(), size})) << of.name;
  }
}

// Of a layer norm that a program writes down with one loop, by the order of sums that layers.h fixes.
TEST(LayerKinds, LayerNormHasTheBitsOfTheOrderThatTheHeaderFixes) {
  constexpr int64_t kColumns = 53;
  auto mlp = test::make({"", kColumns, {test::layer_norm()}});
  Batch batch(*mlp, 5);
  batch.train(*mlp);
  const auto lane_sum = [](const auto& term) {
    float lanes[16] = {};
    for (int64_t c = 0; c < kColumns; ++c) lanes[c % 16] = term(c, lanes[c % 16]);
    for (int half = 8; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
  };
  const float* weight = mlp->parameters().values();
  const float* bias = weight + kColumns;
  for (int64_t r = 0; r < 5; ++r) {
    const auto x = [&](int64_t c) { return batch.input.at(r, c); };
    const auto g = [&](int64_t c) { return batch.dy.at(r, c) * weight[c]; };
    const float mean = lane_sum([&](int64_t c, float sum) { return sum + x(c); }) / kColumns;
    const float variance = lane_sum([&](int64_t c, float sum) {
                             const float off = x(c) - mean;
                             return std::fma(off, off, sum);
                           }) /
                           kColumns;
    const float scale = 1 / std::sqrt(variance + 1e-5F);
    const auto h = [&](int64_t c) { return (x(c) - mean) * scale; };
    const float a = lane_sum([&](int64_t c, float sum) { return sum + g(c); }) / kColumns;
    const float b =
        lane_sum([&](int64_t c, float sum) { return std::fma(g(c), h(c), sum); }) / kColumns;
    for (int64_t c = 0; c < kColumns; ++c) {
      EXPECT_EQ(batch.output.at(r, c), h(c) * weight[c] + bias[c]) << r << " " << c;
      EXPECT_EQ(batch.dx.at(r, c), ((g(c) - a) - h(c) * b) * scale) << r << " " << c;
    }
  }
}

TEST(LayerKinds, ParametersHaveTheirNamesShapesAndInitialValues) {
  Mlp mlp(200, {.seed = kSeed});
  mlp.add(test::layer_norm());
  mlp.add(test::dropout());
  mlp.add(test::cross());
  mlp.add(test::cross(50));
  const std::vector<std::pair<std::string, std::vector<int64_t>>> expected = {
      {"layer.0.weight", {200}}, {"layer.0.bias", {200}},     {"layer.2.weight", {200, 200}},
      {"layer.2.bias", {200}},   {"layer.3.down", {50, 200}}, {"layer.3.weight", {200, 50}},
      {"layer.3.bias", {200}}};
  const auto& infos = mlp.parameters().infos();
  ASSERT_EQ(infos.size(), expected.size());
  const auto deviation = [&](size_t p) {
    double square = 0;
    for (const float v : test::values_of(mlp, p)) square += double{v} * v;
    return std::sqrt(square / static_cast<double>(infos[p].size));
  };
  for (size_t p = 0; p < infos.size(); ++p) {
    EXPECT_EQ(infos[p].name, expected[p].first);
    EXPECT_EQ(infos[p].shape, expected[p].second);
  }
  EXPECT_EQ(test::values_of(mlp, 0)[199], 1);
  EXPECT_EQ(test::values_of(mlp, 1)[199], 0);
  EXPECT_NEAR(deviation(2) / std::sqrt(2.0 / 400), 1, 0.02);
  EXPECT_NEAR(deviation(3) / std::sqrt(1.0 / 200), 1, 0.2);
  EXPECT_NEAR(deviation(4) / std::sqrt(2.0 / 250), 1, 0.03);
  EXPECT_NEAR(deviation(5) / std::sqrt(2.0 / 250), 1, 0.03);
  EXPECT_FALSE(same_bits(test::values_of(mlp, 4), test::values_of(mlp, 5)))
      << "streams of their own";
}

}  // namespace
}  // namespace shardrec::dense
