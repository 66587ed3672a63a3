// Stacks of layers in each precision on a device: numbers between the bounds that follow from their roundings, copies of
// weights that follow their masters, and the bits of the CPU where no matrix product is involved.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "compute/cuda/host/copies.h"
#include "dense/layer_stacks.h"
#include "dense/precision_reference.h"

namespace shardrec::dense {
namespace {

using test::Rows;
using test::same_bits;
using test::Samples;
using test::StackOf;

constexpr uint64_t kSeed = 7;
constexpr device::ContextOptions kDevice{.device = 0};

constexpr std::array kNarrow = {Precision::kBfloat16, Precision::kFloat16};

// With a scale by which gradients of about 1 stay finite in float16.
constexpr double scale_of(Precision precision) { return precision == Precision::kFloat16 ? 16 : 1; }
MlpOptions options(Precision precision, double rate = 0.01) {
  return {.optimizer = {.learning_rate = rate},
          .seed = kSeed,
          .precision = precision,
          .loss_scale = {.scale = scale_of(precision), .steps = 0},
          .place = kDevice};
}

core::RowTensor row_tensor(float* data, int64_t count, core::Device device) {
  return {.data = static_cast<std::byte*>(static_cast<void*>(data)),
          .rows = 1,
          .columns = count,
          .stride = count,
          .dtype = SHARDREC_FLOAT32,
          .element_bytes = sizeof(float),
          .device = device};
}
constexpr core::Device kThere{.type = SHARDREC_DEVICE_CUDA, .id = 0};

std::vector<float> from_device(float* there, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  compute::cuda::host::copy_tensor(row_tensor(values.data(), count, {}),
                                   row_tensor(there, count, kThere), 0);
  return values;
}

// Trains one batch. forward: the number of the forward in training; -1: evaluation.
void expect_reference(Mlp& mlp, Precision precision, int64_t size, int64_t gap, int64_t forward) {
  SCOPED_TRACE("batch " + std::to_string(size) + ", precision " +
               std::to_string(static_cast<int>(precision)));
  mlp.set_training(forward >= 0);
  Samples samples(mlp, size, gap);
  samples.train(mlp);
  mlp.fetch();
  test::PrecisionReference reference(mlp, precision, scale_of(precision));
  reference.run(samples.input, samples.dy, {.seed = kSeed, .forward = forward});
  test::expect_inside(samples.output.values(), reference.output(), "output");
  test::expect_inside(samples.dx.values(), reference.dx, "input gradient");
  EXPECT_TRUE(samples.output.gaps_untouched() && samples.dx.gaps_untouched());
  for (const ParameterInfo& info : mlp.parameters().infos()) {
    const std::vector<float> found =
        from_device(mlp.parameters().size() == 0 ? nullptr : mlp.gradients(info.offset), info.size);
    test::expect_inside(found, reference.gradients.at(info.name), info.name);
  }
}

std::vector<StackOf> all_stacks() {
  std::vector<StackOf> stacks = test::stacks();
  stacks.push_back({"linear", 5, {test::linear(7), test::linear(130), test::linear(1, false)}});
  stacks.push_back({"one linear with ReLU", 3, {test::linear(17)}});
  return stacks;
}

TEST(DevicePrecision, NumbersAreBetweenTheBoundsOfTheirRoundings) {
  for (const Precision precision :
       {Precision::kFloat32, Precision::kTfloat32, Precision::kBfloat16, Precision::kFloat16}) {
    for (const StackOf& of : all_stacks()) {
      SCOPED_TRACE(of.name);
      for (const int64_t size : {0, 1, 7, 65}) {
        expect_reference(*test::make(of, options(precision)), precision, size, size % 3, 0);
      }
      expect_reference(*test::make(of, options(precision)), precision, 7, 0, -1);
    }
  }
}

// FLOAT32 would be between the bounds of TFLOAT32 too.
TEST(DevicePrecision, Tfloat32RoundsTheFactorsOfProducts) {
  const StackOf of{"linear", 20, {test::linear(30, false)}};
  const auto exact = test::make(of, options(Precision::kFloat32));
  const auto rounded = test::make(of, options(Precision::kTfloat32));
  Samples a(*exact, 40), b(*rounded, 40);
  a.train(*exact);
  b.train(*rounded);
  int64_t different = 0;
  for (int64_t r = 0; r < 40; ++r) {
    for (int64_t c = 0; c < 30; ++c) {
      if (std::fabs(a.output.at(r, c) - b.output.at(r, c)) > 1e-5F) ++different;
    }
  }
  EXPECT_GT(different, 40 * 30 / 2);
}

TEST(DevicePrecision, WithoutProductsNumbersHaveTheBitsOfTheCpu) {
  for (const Precision precision : kNarrow) {
    const StackOf of{
        "norms",
        37,
        {test::layer_norm(), test::dropout(0.25), test::layer_norm(0.1), test::dropout(0.5)}};
    MlpOptions here = options(precision, 0.05);
    here.place = {};
    const auto cpu = test::make(of, here);
    const auto gpu = test::make(of, options(precision, 0.05));
    for (unsigned step = 0; step < 4; ++step) {
      Samples a(*cpu, 150, 0, step), b(*gpu, 150, 0, step);
      a.train(*cpu);
      b.train(*gpu);
      ASSERT_TRUE(same_bits(a.output.values(), b.output.values())) << step;
      ASSERT_TRUE(same_bits(a.dx.values(), b.dx.values())) << step;
      cpu->step();
      gpu->step();
    }
    gpu->fetch();
    const auto size = static_cast<size_t>(cpu->parameters().size());
    EXPECT_TRUE(same_bits({cpu->parameters().values(), size}, {gpu->parameters().values(), size}));
  }
}

// However they change: by steps, from the host, and by views.
TEST(DevicePrecision, CopiesOfWeightsFollowTheirMasters) {
  for (const Precision precision : kNarrow) {
    const StackOf of{"both kinds", 9, {test::linear(13), test::cross(3), test::linear(2, false)}};
    auto stepped = test::make(of, options(precision, 0.005));
    for (unsigned step = 0; step < 3; ++step) {
      Samples samples(*stepped, 30, 0, step);
      samples.train(*stepped);
      stepped->step();
      stepped->forward(samples.input.view(), samples.output.view());
      stepped->fetch();
      test::PrecisionReference reference(*stepped, precision, scale_of(precision));
      reference.run(samples.input, samples.dy, {});
      test::expect_inside(samples.output.values(), reference.output(), "after a step");
    }
    const int64_t size = stepped->parameters().size();
    for (int64_t i = 0; i < size; ++i) stepped->parameters().values()[i] *= -0.7F;
    stepped->publish();
    expect_reference(*stepped, precision, 30, 0, -1);

    float* const view = stepped->values(0);
    for (const float factor :
         {0.4F, -2.0F}) {  // also behind the first forward that knows of the view
      std::vector<float> values = from_device(view, size);
      for (float& value : values) value *= factor;
      compute::cuda::host::copy_tensor(row_tensor(view, size, kThere),
                                       row_tensor(values.data(), size, {}), 0);
      expect_reference(*stepped, precision, 30, 0, -1);
    }
  }
}

TEST(DevicePrecision, BackwardHasTheWeightsOfItsForward) {
  for (const Precision precision : kNarrow) {
    const StackOf of{"linear", 6, {test::linear(9), test::linear(2, false)}};
    auto changed = test::make(of, options(precision));
    auto same = test::make(of, options(precision));
    Samples a(*changed, 11), b(*same, 11);
    changed->forward(a.input.view(), a.output.view());
    same->forward(b.input.view(), b.output.view());
    changed->fetch();
    std::fill_n(changed->parameters().values(), changed->parameters().size(), 3.0F);
    changed->publish();
    changed->backward(a.dy.view(), a.dx.view());
    same->backward(b.dy.view(), b.dx.view());
    EXPECT_TRUE(same_bits(a.dx.values(), b.dx.values()));
  }
}

TEST(DevicePrecision, AccumulatesTheGradientsOfEachBatch) {
  for (const Precision precision :
       {Precision::kTfloat32, Precision::kBfloat16, Precision::kFloat16}) {
    const StackOf of = test::stacks().back();
    MlpOptions with = options(precision);
    const auto alone = test::make(of, with);
    with.accumulate = true;
    const auto sum = test::make(of, with);
    const int64_t size = alone->parameters().size();
    std::vector<float> expected(static_cast<size_t>(size));
    for (unsigned step = 0; step < 2; ++step) {
      Samples first(*alone, 66, 0, step), second(*sum, 66, 0, step);
      first.train(*alone);
      second.train(*sum);
      const std::vector<float> own = from_device(alone->gradients(0), size);
      for (size_t i = 0; i < own.size(); ++i) expected[i] += own[i];
      EXPECT_TRUE(same_bits(from_device(sum->gradients(0), size), expected)) << step;
    }
  }
}

TEST(DevicePrecision, ANaNGoesThroughAReLU) {
  for (const Precision precision :
       {Precision::kTfloat32, Precision::kBfloat16, Precision::kFloat16}) {
    const auto mlp =
        test::make({"relu", 2, {test::linear(3), test::linear(1)}}, options(precision));
    Samples samples(*mlp, 4);
    samples.input.at(2, 0) = std::nanf("");
    samples.train(*mlp);
    EXPECT_TRUE(std::isnan(samples.output.at(2, 0)));
    EXPECT_FALSE(std::isnan(samples.output.at(1, 0)));
    EXPECT_TRUE(std::isnan(from_device(mlp->gradients(0), 1)[0]));
  }
}

}  // namespace
}  // namespace shardrec::dense
