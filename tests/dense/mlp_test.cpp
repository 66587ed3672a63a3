#include "dense/layers/mlp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "dense/reference.h"

namespace shardrec::dense {
namespace {

using test::gradients_of;
using test::ReferenceMlp;
using test::Rows;
using test::same_bits;
using test::values_of;

struct Shape {
  int64_t inputs;
  std::vector<int64_t> outputs;
  std::vector<bool> relu;
};

std::unique_ptr<Mlp> make(const Shape& shape, int threads = 1, plan::Optimizer optimizer = {},
                          uint64_t seed = 7, bool accumulate = false) {
  auto mlp = std::make_unique<Mlp>(
      shape.inputs,
      MlpOptions{
          .optimizer = optimizer, .seed = seed, .threads = threads, .accumulate = accumulate});
  for (size_t l = 0; l < shape.outputs.size(); ++l) {
    mlp->add_linear(shape.outputs[l],
                    shape.relu[l] ? SHARDREC_ACTIVATION_RELU : SHARDREC_ACTIVATION_NONE);
  }
  return mlp;
}

template <class Body>
shardrec_status status_of(const Body& body, std::string* sentence = nullptr) {
  try {
    body();
    return SHARDREC_OK;
  } catch (const core::Error& error) {
    if (sentence != nullptr) *sentence = error.sentence();
    return error.status();
  }
}

const Shape kTop{13, {64, 33, 1}, {true, true, false}};
const Shape kBottom{5, {40, 16}, {true, true}};
const Shape kMixed{9, {17, 6, 3}, {false, true, false}};
const Shape kSingle{3, {200}, {true}};

void check_against_reference(const Shape& shape, int64_t batch, int64_t gap) {
  SCOPED_TRACE("batch " + std::to_string(batch) + ", gap " + std::to_string(gap));
  std::mt19937 random(static_cast<unsigned>(batch + 1));
  auto mlp = make(shape);
  const int64_t outputs = shape.outputs.back();
  Rows input(batch, shape.inputs, gap), output(batch, outputs, gap);
  Rows dy(batch, outputs, gap), dx(batch, shape.inputs, gap);
  input.fill(random);
  dy.fill(random);
  mlp->forward(input.view(), output.view());
  mlp->backward(dy.view(), dx.view());

  const ReferenceMlp reference(*mlp, shape.relu);
  std::vector<double> expected;
  for (int64_t s = 0; s < batch; ++s) {
    std::vector<double> x;
    for (int64_t c = 0; c < shape.inputs; ++c) x.push_back(input.at(s, c));
    const auto y = reference.run(x).back();
    expected.insert(expected.end(), y.begin(), y.end());
  }
  test::expect_near(output.values(), expected, 2e-6, "output");
  const auto gradients = reference.gradients(input, dy);
  test::expect_near(dx.values(), gradients.input, 4e-6, "input gradient");
  const double scale = 1e-6 * std::sqrt(static_cast<double>(batch) + 1);
  for (size_t l = 0; l < shape.outputs.size(); ++l) {
    test::expect_near(gradients_of(*mlp, 2 * l), gradients.weight[l], scale * 4, "weight gradient");
    test::expect_near(gradients_of(*mlp, 2 * l + 1), gradients.bias[l], scale * 4, "bias gradient");
  }
  EXPECT_TRUE(output.gaps_untouched());
  EXPECT_TRUE(dx.gaps_untouched());
}

TEST(Mlp, ForwardAndBackwardEqualTheDoubleReferenceForAllBatchSizesAndStrides) {
  for (const Shape* shape : {&kTop, &kBottom, &kMixed, &kSingle}) {
    for (const int64_t batch : {0, 1, 2, 63, 64, 65, 129, 1000}) {
      check_against_reference(*shape, batch, 0);
      check_against_reference(*shape, batch, 3);
    }
  }
}

// 2^24 + 1 is no float: a tile's sum of 2^24 and of ones behind it stays what it was.
TEST(Mlp, TilesAreTwiceAsLongWhereSomeLayerIsWide) {
  for (const int64_t outputs : {511, 512}) {  // by 512 inputs: 2^18 weights are wide
    auto mlp = make({512, {outputs}, {false}});
    Rows input(128, 512, 0), output(128, outputs, 0), dy(128, outputs, 0);
    for (int64_t row = 0; row < 128; ++row) dy.view().row(row)[0] = row == 0 ? 0x1p24F : 1;
    mlp->forward(input.view(), output.view());
    mlp->backward(dy.view(), {});
    EXPECT_EQ(gradients_of(*mlp, 1)[0], outputs == 512 ? 0x1p24F : 0x1p24F + 64) << outputs;
  }
}

TEST(Mlp, LargeBatchesWhoseRowsAreCutInChunksEqualTheReference) {
  check_against_reference(kMixed, 2500, 1);
  check_against_reference(kTop, 4097, 0);
}

// Central differences of sum(output * dy), in double, through the reference; and the reference
// through the stack's own gradients above. Here: the stack's gradients directly.
TEST(Mlp, GradientsEqualFiniteDifferences) {
  std::mt19937 random(3);
  const Shape& shape = kMixed;
  auto mlp = make(shape);
  Rows input(6, shape.inputs), output(6, 3), dy(6, 3), dx(6, shape.inputs);
  input.fill(random);
  dy.fill(random);
  mlp->forward(input.view(), output.view());
  mlp->backward(dy.view(), dx.view());

  ReferenceMlp reference(*mlp, shape.relu);
  const auto objective = [&] {
    double sum = 0;
    for (int64_t s = 0; s < input.rows(); ++s) {
      std::vector<double> x;
      for (int64_t c = 0; c < input.cols(); ++c) x.push_back(input.at(s, c));
      const auto y = reference.run(x).back();
      for (size_t o = 0; o < y.size(); ++o) sum += y[o] * dy.at(s, static_cast<int64_t>(o));
    }
    return sum;
  };
  constexpr double kStep = 1e-6;
  const auto slope = [&](double& parameter) {
    const double at = parameter;
    parameter = at + kStep;
    const double above = objective();
    parameter = at - kStep;
    const double below = objective();
    parameter = at;
    return (above - below) / (2 * kStep);
  };
  for (size_t l = 0; l < reference.layers.size(); ++l) {
    auto& layer = reference.layers[l];
    const auto weights = gradients_of(*mlp, 2 * l);
    for (size_t i = 0; i < weights.size(); i += 5) {
      EXPECT_NEAR(weights[i], slope(layer.weight[i]), 2e-5) << "layer " << l << " weight " << i;
    }
    const auto biases = gradients_of(*mlp, 2 * l + 1);
    for (size_t i = 0; i < biases.size(); ++i) {
      EXPECT_NEAR(biases[i], slope(layer.bias[i]), 2e-5) << "layer " << l << " bias " << i;
    }
  }
}

TEST(Mlp, BitsDoNotDependOnTheNumberOfThreads) {
  const Shape wide{30, {300, 150, 2}, {true, true, false}};
  for (const int64_t batch : {1, 77, 1000, 3000}) {
    std::vector<std::vector<float>> seen;
    for (const int threads : {1, 2, 4}) {
      std::mt19937 random(5);
      auto mlp = make(wide, threads, {.kind = SHARDREC_OPTIMIZER_ADAM});
      Rows input(batch, 30), output(batch, 2), dy(batch, 2), dx(batch, 30);
      input.fill(random);
      dy.fill(random);
      for (int step = 0; step < 3; ++step) {
        mlp->forward(input.view(), output.view());
        mlp->backward(dy.view(), dx.view());
        mlp->step();
      }
      std::vector<float> all = output.values();
      const std::vector<float> gradient = dx.values();
      all.insert(all.end(), gradient.begin(), gradient.end());
      const float* values = mlp->parameters().values();
      all.insert(all.end(), values, values + mlp->parameters().size());
      seen.push_back(std::move(all));
    }
    EXPECT_TRUE(same_bits(seen[0], seen[1])) << "batch " << batch << ", 2 threads";
    EXPECT_TRUE(same_bits(seen[0], seen[2])) << "batch " << batch << ", 4 threads";
  }
}

TEST(Mlp, BackwardWithoutInputGradientGivesTheSameParameterGradients) {
  std::mt19937 random(11);
  auto mlp = make(kTop);
  Rows input(70, 13), output(70, 1), dy(70, 1), dx(70, 13);
  input.fill(random);
  dy.fill(random);
  mlp->forward(input.view(), output.view());
  mlp->backward(dy.view(), dx.view());
  const auto all = std::span<const float>(mlp->parameters().gradients(),
                                          static_cast<size_t>(mlp->parameters().size()));
  const std::vector<float> with(all.begin(), all.end());
  std::fill_n(mlp->parameters().gradients(), mlp->parameters().size(), 99.0F);
  mlp->backward(dy.view(), {});
  EXPECT_TRUE(same_bits(with, all)) << "also: gradients are overwritten, not added to";
}

// Micro-batches of all sizes, with one chunk of rows and with several: the sum of what each gives
// alone, in float32 and in the order of the calls; near the double reference of all samples.
TEST(Mlp, AccumulatedGradientsAreTheSumOverMicroBatchesInCallOrder) {
  for (const int threads : {1, 3}) {
    std::mt19937 random(21);
    const Shape& shape = kTop;
    auto alone = make(shape, threads);
    auto added = make(shape, threads, {}, 7, true);
    const auto size = static_cast<size_t>(added->parameters().size());
    std::vector<float> sum(size, 0);
    const ReferenceMlp reference(*added, shape.relu);
    std::vector<std::vector<double>> weight, bias;
    for (const int64_t batch : {65, 0, 2500, 1}) {
      Rows input(batch, 13), output(batch, 1), dy(batch, 1), dx(batch, 13), other(batch, 13);
      input.fill(random);
      dy.fill(random);
      alone->forward(input.view(), output.view());
      alone->backward(dy.view(), dx.view());
      added->forward(input.view(), output.view());
      added->backward(dy.view(), other.view());
      EXPECT_TRUE(same_bits(dx.values(), other.values())) << "the input's gradient is overwritten";
      for (size_t i = 0; i < size; ++i) sum[i] += alone->parameters().gradients()[i];
      const auto expected = reference.gradients(input, dy);
      if (weight.empty()) {
        weight = expected.weight;
        bias = expected.bias;
        continue;
      }
      for (size_t l = 0; l < weight.size(); ++l) {
        for (size_t i = 0; i < weight[l].size(); ++i) weight[l][i] += expected.weight[l][i];
        for (size_t i = 0; i < bias[l].size(); ++i) bias[l][i] += expected.bias[l][i];
      }
    }
    EXPECT_TRUE(same_bits(sum, {added->parameters().gradients(), size}));
    for (size_t l = 0; l < weight.size(); ++l) {
      test::expect_near(gradients_of(*added, 2 * l), weight[l], 3e-4, "weight gradient");
      test::expect_near(gradients_of(*added, 2 * l + 1), bias[l], 3e-4, "bias gradient");
    }
    added->zero_gradients();
    EXPECT_TRUE(same_bits(std::vector<float>(size, 0), {added->parameters().gradients(), size}));
  }
}

TEST(Mlp, AnEmptyBatchGivesZeroGradients) {
  auto mlp = make(kTop);
  std::fill_n(mlp->parameters().gradients(), mlp->parameters().size(), 99.0F);
  mlp->forward({nullptr, 0, 13, 13}, {nullptr, 0, 1, 1});
  mlp->backward({nullptr, 0, 1, 1}, {});
  for (int64_t i = 0; i < mlp->parameters().size(); ++i) {
    ASSERT_EQ(mlp->parameters().gradients()[i], 0) << i;
  }
}

TEST(Mlp, TheOutputOfALastReluNeedNotLiveUntilBackward) {
  std::mt19937 random(1);
  auto mlp = make(kBottom);
  Rows input(20, 5), output(20, 16), dy(20, 16), dx(20, 5);
  input.fill(random);
  dy.fill(random);
  mlp->forward(input.view(), output.view());
  mlp->backward(dy.view(), dx.view());
  const std::vector<float> expected = dx.values();
  mlp->forward(input.view(), output.view());
  output.fill(random);
  mlp->backward(dy.view(), dx.view());
  EXPECT_TRUE(same_bits(expected, dx.values()));
}

TEST(Mlp, NotANumberPassesThroughRelu) {
  auto mlp = make(kBottom);
  Rows input(2, 5), output(2, 16);
  std::mt19937 random(1);
  input.fill(random);
  input.at(1, 2) = std::numeric_limits<float>::quiet_NaN();
  mlp->forward(input.view(), output.view());
  for (int64_t c = 0; c < 16; ++c) {
    EXPECT_FALSE(std::isnan(output.at(0, c)));
    EXPECT_TRUE(std::isnan(output.at(1, c)));
  }
}

TEST(Mlp, InitialValuesAreNormalAndDependOnSeedAndLayerOnly) {
  const Shape shape{200, {300, 100}, {true, true}};
  auto one = make(shape, 1), two = make(shape, 3), other = make(shape, 1, {}, 8);
  for (size_t p = 0; p < 4; ++p) {
    EXPECT_TRUE(same_bits(values_of(*one, p), values_of(*two, p))) << "threads, parameter " << p;
    EXPECT_FALSE(same_bits(values_of(*one, p), values_of(*other, p))) << "seed, parameter " << p;
  }
  const auto check = [](std::span<const float> values, double deviation) {
    double mean = 0, square = 0, fourth = 0;
    for (const float value : values) {
      mean += value;
      square += double{value} * value;
      fourth += std::pow(double{value}, 4);
    }
    const auto n = static_cast<double>(values.size());
    mean /= n;
    square /= n;
    fourth /= n;
    EXPECT_NEAR(mean, 0, 4 * deviation / std::sqrt(n));
    EXPECT_NEAR(square / (deviation * deviation), 1, 4 * std::sqrt(2 / n));
    EXPECT_NEAR(fourth / (square * square), 3, 4 * std::sqrt(24 / n)) << "kurtosis of a normal";
  };
  check(values_of(*one, 0), std::sqrt(2.0 / 500));
  check(values_of(*one, 2), std::sqrt(2.0 / 400));
  check(values_of(*one, 1), std::sqrt(1.0 / 300));
}

TEST(Mlp, AddingALayerKeepsEarlierParameters) {
  auto mlp = make({3, {4}, {true}});
  mlp->parameters().values()[5] = 42;
  const auto before = values_of(*mlp, 0);
  const std::vector<float> kept(before.begin(), before.end());
  mlp->add_linear(2, SHARDREC_ACTIVATION_NONE);
  EXPECT_TRUE(same_bits(kept, values_of(*mlp, 0)));
  ASSERT_EQ(mlp->parameters().infos().size(), 4U);
  EXPECT_EQ(mlp->parameters().infos()[3].name, "layer.1.bias");
  EXPECT_EQ(mlp->parameters().infos()[2].shape, (std::vector<int64_t>{2, 4}));
}

TEST(Mlp, CallsOutOfOrderAndWrongShapesAreRefused) {
  std::string sentence;
  Mlp empty(3, {});
  Rows input(2, 3), output(2, 4);
  EXPECT_EQ(status_of([&] { empty.forward(input.view(), output.view()); }), SHARDREC_INVALID_STATE);
  EXPECT_EQ(status_of([&] { empty.step(); }), SHARDREC_INVALID_STATE);
  auto mlp = make({3, {4}, {true}});
  EXPECT_EQ(status_of([&] { mlp->backward(output.view(), {}); }), SHARDREC_INVALID_STATE);
  EXPECT_EQ(status_of([&] { mlp->step(); }), SHARDREC_INVALID_STATE);
  Rows wrong(2, 5);
  EXPECT_EQ(status_of([&] { mlp->forward(wrong.view(), output.view()); }, &sentence),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(sentence, "input has shape [2, 5]; [2, 3] is accepted");
  Rows fewer(1, 4);
  EXPECT_EQ(status_of([&] { mlp->forward(input.view(), fewer.view()); }, &sentence),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(sentence, "output has shape [1, 4]; [2, 4] is accepted");
  input.at(0, 0) = 1;
  mlp->forward(input.view(), output.view());
  EXPECT_EQ(status_of([&] { mlp->add_linear(2, SHARDREC_ACTIVATION_NONE); }),
            SHARDREC_INVALID_STATE);
  EXPECT_EQ(status_of([&] { mlp->step(); }), SHARDREC_INVALID_STATE);
  EXPECT_EQ(status_of([&] { mlp->backward(wrong.view(), {}); }), SHARDREC_INVALID_ARGUMENT);

  EXPECT_EQ(status_of([] { Mlp(0, {}); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([] { Mlp(65537, {}); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([] { Mlp(1, {.optimizer = {.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD}}); }),
            SHARDREC_UNSUPPORTED);
  Mlp plain(3, {});
  EXPECT_EQ(status_of([&] { plain.add_linear(0, SHARDREC_ACTIVATION_NONE); }),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { plain.add_linear(65537, SHARDREC_ACTIVATION_NONE); }),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { plain.add_linear(3, static_cast<shardrec_activation>(2)); }),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(plain.outputs(), 3);
}

}  // namespace
}  // namespace shardrec::dense
