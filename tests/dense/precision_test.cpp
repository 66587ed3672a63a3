// Stacks of layers in 16 bits on the CPU: numbers between the bounds that follow from their roundings, float32
// masters, training.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/math/scalar.h"
#include "core/error.h"
#include "dense/layer_stacks.h"
#include "dense/precision_reference.h"

namespace shardrec::dense {
namespace {

using test::Rows;
using test::same_bits;
using test::Samples;
using test::StackOf;

constexpr uint64_t kSeed = 7;
// Of 16 bits.
constexpr std::array kNarrow = {Precision::kBfloat16, Precision::kFloat16};

// With a scale by which gradients of about 1 stay finite in float16.
constexpr double scale_of(Precision precision) { return precision == Precision::kFloat16 ? 16 : 1; }
MlpOptions options(Precision precision, double rate = 0.01) {
  return {.optimizer = {.learning_rate = rate},
          .seed = kSeed,
          .precision = precision,
          .loss_scale = {.scale = scale_of(precision), .steps = 0}};
}
std::string name_of(Precision precision) {
  return "precision " + std::to_string(static_cast<int>(precision));
}

std::span<const float> gradient_of(const Mlp& mlp, const ParameterInfo& info) {
  return {mlp.parameters().gradients(info.offset), static_cast<size_t>(info.size)};
}

std::vector<float> values_of(const Mlp& mlp) {
  const float* const values = mlp.parameters().values();
  return {values, values + mlp.parameters().size()};
}

// The number of 16 bits that is nearest, as a float.
float nearest_of(compute::Element element, float number) {
  using namespace compute::math;
  return element == compute::Element::kFloat16 ? widened<Float16>(nearest_half<Float16>(number))
                                               : widened<Bfloat16>(nearest_half<Bfloat16>(number));
}

TEST(RoundToHalf, IsToNearestWithTiesToEvenOnAllInstructionSets) {
  std::vector<float> numbers;
  // Around powers of two, and where float16 ends: 2^-25, 2^-24, 2^-14, 65504 and 65520.
  for (const uint32_t high : {0U, 1U, 0x0080U, 0x3300U, 0x3380U, 0x33C0U, 0x387FU, 0x3880U, 0x3F80U,
                              0x3F81U, 0x477FU, 0x4780U, 0x7F7EU, 0x7F7FU, 0x7F80U, 0x7FC0U}) {
    for (const uint32_t low : {0U, 1U, 0xFFFU, 0x1000U, 0x1001U, 0x3000U, 0x7FFFU, 0x8000U, 0x8001U,
                               0xE000U, 0xEFFFU, 0xF000U, 0xFFFFU}) {
      for (const uint32_t sign : {0U, 0x80000000U}) {
        numbers.push_back(std::bit_cast<float>(sign | high << 16 | low));
      }
    }
  }
  EXPECT_EQ(nearest_of(compute::Element::kFloat16, 0x1.8p-24F), 0x1p-23F);
  for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
    compute::force_cpu_kernels(&compute::cpu_kernels_at(set));
    for (const auto element : {compute::Element::kFloat16, compute::Element::kBfloat16}) {
      std::vector<float> rounded(numbers.size());
      rounding_to(element, kernels())(numbers.data(), rounded.data(),
                                      static_cast<int64_t>(numbers.size()));
      for (size_t i = 0; i < numbers.size(); ++i) {
        EXPECT_EQ(std::bit_cast<uint32_t>(rounded[i]),
                  std::bit_cast<uint32_t>(nearest_of(element, numbers[i])))
            << kernels().name << ": " << numbers[i];
      }
    }
  }
  compute::force_cpu_kernels(nullptr);
}

void expect_reference(const StackOf& of, int64_t size, int64_t gap, bool training,
                      Precision precision) {
  SCOPED_TRACE(of.name + ", batch " + std::to_string(size) + (training ? "" : ", evaluation"));
  auto mlp = test::make(of, options(precision));
  mlp->set_training(training);
  Samples samples(*mlp, size, gap);
  samples.train(*mlp);
  test::PrecisionReference reference(*mlp, precision, scale_of(precision));
  reference.run(samples.input, samples.dy, {.seed = kSeed, .forward = training ? 0 : -1});
  test::expect_inside(samples.output.values(), reference.output(), "output");
  test::expect_inside(samples.dx.values(), reference.dx, "input gradient");
  for (const ParameterInfo& info : mlp->parameters().infos()) {
    test::expect_inside(gradient_of(*mlp, info), reference.gradients.at(info.name), info.name);
  }
  EXPECT_TRUE(samples.output.gaps_untouched() && samples.dx.gaps_untouched());
}

std::vector<StackOf> all_stacks() {
  std::vector<StackOf> stacks = test::stacks();
  stacks.push_back({"linear", 5, {test::linear(7), test::linear(130), test::linear(1, false)}});
  stacks.push_back({"one linear with ReLU", 3, {test::linear(17)}});
  return stacks;
}

TEST(Precision, NumbersAreBetweenTheBoundsOfTheirRoundings) {
  for (const Precision precision :
       {Precision::kFloat32, Precision::kBfloat16, Precision::kFloat16}) {
    SCOPED_TRACE(name_of(precision));
    for (const StackOf& of : all_stacks()) {
      for (const int64_t size : {0, 1, 7, 65}) {
        expect_reference(of, size, size % 3, true, precision);
      }
      expect_reference(of, 7, 0, false, precision);
    }
  }
}

// Bounds that another precision keeps too would show nothing.
TEST(Precision, TheBoundsTellThePrecisionsApart) {
  const StackOf of{"linear", 20, {test::linear(30), test::linear(40), test::linear(25, false)}};
  const auto half = [](size_t count) { return static_cast<int64_t>(count) / 2; };
  const auto expect_outside = [&](Precision own, Precision others) {
    SCOPED_TRACE(name_of(own) + " against " + name_of(others));
    auto mlp = test::make(of, options(own));
    Samples samples(*mlp, 50);
    samples.train(*mlp);
    test::PrecisionReference reference(*mlp, others);
    reference.run(samples.input, samples.dy, {});
    EXPECT_GT(test::outside(samples.output.values(), reference.output()), half(50 * 25));
    EXPECT_GT(test::outside(samples.dx.values(), reference.dx), half(50 * 20));
    for (const ParameterInfo& info : mlp->parameters().infos()) {
      EXPECT_GT(test::outside(gradient_of(*mlp, info), reference.gradients.at(info.name)),
                half(static_cast<size_t>(info.size)))
          << info.name;
    }
  };
  for (const Precision narrow : kNarrow) expect_outside(Precision::kFloat32, narrow);
  expect_outside(Precision::kBfloat16, Precision::kFloat16);
}

TEST(Precision, BitsDependNeitherOnThreadsNorOnTheInstructionSet) {
  for (const Precision precision : kNarrow) {
    SCOPED_TRACE(name_of(precision));
    const StackOf of = test::stacks().back();
    const auto run = [&](int threads) {
      MlpOptions with = options(precision);
      with.threads = threads;
      auto mlp = test::make(of, with);
      Samples samples(*mlp, 300);
      samples.train(*mlp);
      mlp->step();
      return std::make_pair(samples.dx.values(), values_of(*mlp));
    };
    const auto expected = run(1);
    const auto several = run(3);
    EXPECT_TRUE(same_bits(several.first, expected.first));
    EXPECT_TRUE(same_bits(several.second, expected.second));
    for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
      compute::force_cpu_kernels(&compute::cpu_kernels_at(set));
      const auto own = run(1);
      EXPECT_TRUE(same_bits(own.first, expected.first)) << kernels().name;
      EXPECT_TRUE(same_bits(own.second, expected.second)) << kernels().name;
    }
    compute::force_cpu_kernels(nullptr);
  }
}

// Steps that bfloat16 could not hold add up in the parameters, which have the bits of FLOAT32's steps by the same
// gradients.
TEST(Precision, StepsAreTakenOnFloat32Masters) {
  for (const Precision precision : kNarrow) {
    SCOPED_TRACE(name_of(precision));
    const StackOf of{"linear", 6, {test::linear(9), test::linear(2, false)}};
    auto mlp = test::make(of, options(precision, 1e-6));
    auto exact = test::make(of, options(Precision::kFloat32, 1e-6));
    const std::vector<float> first = values_of(*mlp);
    ASSERT_TRUE(same_bits(values_of(*exact), first));
    for (unsigned step = 0; step < 10; ++step) {
      Samples samples(*mlp, 20, 0, step), same(*mlp, 20, 0, step);
      samples.train(*mlp);
      same.train(*exact);
      std::copy_n(mlp->parameters().gradients(), first.size(), exact->parameters().gradients());
      mlp->step();
      exact->step();
      ASSERT_TRUE(same_bits(values_of(*mlp), values_of(*exact))) << step;
    }
    const std::vector<float> last = values_of(*mlp);
    const auto round =
        precision == Precision::kFloat16 ? test::nearest_float16 : test::nearest_bfloat16;
    int64_t moved_a_little = 0;
    for (size_t i = 0; i < first.size(); ++i) {
      const bool moved = first[i] != last[i];
      const bool same = round(first[i]) == round(last[i]);
      if (moved && same) ++moved_a_little;
    }
    EXPECT_GT(moved_a_little, static_cast<int64_t>(first.size()) / 2);
  }
}

// Backward multiplies by what its forward did, whatever became of the parameters since.
TEST(Precision, BackwardHasTheWeightsOfItsForward) {
  for (const Precision precision : kNarrow) {
    SCOPED_TRACE(name_of(precision));
    const StackOf of{"linear", 6, {test::linear(9), test::linear(2, false)}};
    auto changed = test::make(of, options(precision));
    auto same = test::make(of, options(precision));
    Samples a(*changed, 11), b(*same, 11);
    changed->forward(a.input.view(), a.output.view());
    same->forward(b.input.view(), b.output.view());
    std::fill_n(changed->parameters().values(), changed->parameters().size(), 3.0F);
    changed->backward(a.dy.view(), a.dx.view());
    same->backward(b.dy.view(), b.dx.view());
    EXPECT_TRUE(same_bits(a.dx.values(), b.dx.values()));
    changed->forward(a.input.view(), a.output.view());
    EXPECT_FALSE(same_bits(a.output.values(), b.output.values()));
  }
}

TEST(Precision, AccumulatedGradientsAreTheSumOverMicroBatchesInCallOrder) {
  for (const Precision precision : kNarrow) {
    SCOPED_TRACE(name_of(precision));
    const StackOf of = test::stacks().back();
    MlpOptions with = options(precision);
    auto alone = test::make(of, with);
    with.accumulate = true;
    auto sum = test::make(of, with);
    std::vector<float> expected(static_cast<size_t>(alone->parameters().size()));
    for (unsigned step = 0; step < 3; ++step) {
      Samples first(*alone, 66, 0, step), second(*sum, 66, 0, step);
      first.train(*alone);
      second.train(*sum);
      for (size_t i = 0; i < expected.size(); ++i)
        expected[i] += alone->parameters().gradients()[i];
      EXPECT_TRUE(same_bits({sum->parameters().gradients(), expected.size()}, expected)) << step;
    }
  }
}

TEST(Precision, ANaNGoesThroughAReLU) {
  for (const Precision precision : kNarrow) {
    SCOPED_TRACE(name_of(precision));
    auto mlp = test::make({"relu", 2, {test::linear(3), test::linear(1)}}, options(precision));
    Samples samples(*mlp, 4);
    samples.input.at(2, 0) = std::nanf("");
    samples.train(*mlp);
    EXPECT_TRUE(std::isnan(samples.output.at(2, 0)));
    EXPECT_FALSE(std::isnan(samples.output.at(1, 0)));
    EXPECT_TRUE(std::isnan(mlp->parameters().gradients()[0]));
  }
}

// The mean of (output - target)^2 over a fixed sample of a smooth function, after training.
double trained_loss(Precision precision) {
  auto mlp = test::make(
      {"net", 8, {test::linear(32), test::layer_norm(), test::linear(16), test::linear(1, false)}},
      options(precision, 0.05));
  constexpr int64_t kBatch = 256;
  double loss = 0;
  for (int step = 0; step < 300; ++step) {
    std::mt19937 random(static_cast<unsigned>(step % 4));
    Rows x(kBatch, 8), y(kBatch, 1), dy(kBatch, 1);
    x.fill(random);
    mlp->forward(x.view(), y.view());
    loss = 0;
    for (int64_t r = 0; r < kBatch; ++r) {
      const float target = std::sin(x.at(r, 0)) + 0.5F * x.at(r, 1) * x.at(r, 2);
      const float off = y.at(r, 0) - target;
      loss += static_cast<double>(off) * off / kBatch;
      dy.at(r, 0) = 2 * off / kBatch;
    }
    mlp->backward(dy.view(), {});
    mlp->step();
  }
  return loss;
}

TEST(Precision, SixteenBitsLearnAsWellAsFloat32) {
  const double exact = trained_loss(Precision::kFloat32);
  EXPECT_LT(exact, 0.1) << "of 0.75 for an output of 0";
  for (const Precision precision : kNarrow) {
    EXPECT_NEAR(trained_loss(precision), exact, 0.1 * exact) << name_of(precision);
  }
}

TEST(Precision, Tfloat32IsRefusedOnTheCpuWithTheReason) {
  try {
    const Mlp mlp(3, options(Precision::kTfloat32));
    FAIL() << "not refused";
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), SHARDREC_UNSUPPORTED);
    EXPECT_NE(std::string(error.sentence()).find("TFLOAT32"), std::string::npos);
    EXPECT_NE(std::string(error.sentence()).find("DEVICE"), std::string::npos);
  }
}

}  // namespace
}  // namespace shardrec::dense
