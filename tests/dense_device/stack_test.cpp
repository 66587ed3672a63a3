// Stacks of layers and the interaction on a device: numbers against double references, and the bits of the CPU where
// no matrix product is involved.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compute/cuda/host/copies.h"
#include "dense/layer_reference.h"
#include "dense/layer_stacks.h"
#include "dense/layers/interaction.h"

namespace shardrec::dense {
namespace {

using test::cross;
using test::dropout;
using test::layer_norm;
using test::linear;
using test::ReferenceStack;
using test::Rows;
using Batch = test::Samples;
using test::same_bits;
using test::StackOf;
using test::Values;

constexpr uint64_t kSeed = 7;
constexpr device::ContextOptions kDevice{.device = 0};

std::vector<float> from_device(const float* there, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  core::RowTensor from{
      .data = static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(there))),
      .rows = 1,
      .columns = count,
      .stride = count,
      .dtype = SHARDREC_FLOAT32,
      .element_bytes = sizeof(float),
      .device = {.type = SHARDREC_DEVICE_CUDA, .id = 0}};
  core::RowTensor to = from;
  to.data = static_cast<std::byte*>(static_cast<void*>(values.data()));
  to.device = {};
  compute::cuda::host::copy_tensor(to, from, 0);
  return values;
}

std::vector<float> gradient_of(Mlp& mlp, const ParameterInfo& info) {
  return from_device(mlp.gradients(info.offset), info.size);
}

Values row_of(Rows& rows, int64_t row) {
  Values values;
  for (int64_t c = 0; c < rows.cols(); ++c) values.push_back(rows.at(row, c));
  return values;
}

std::vector<StackOf> all_stacks() {
  std::vector<StackOf> stacks = test::stacks();
  stacks.push_back({"linear", 5, {linear(7), linear(130), linear(1, false)}});
  stacks.push_back({"one linear with ReLU", 3, {linear(17)}});
  return stacks;
}

void expect_reference(const StackOf& of, int64_t size, int64_t gap, bool training) {
  SCOPED_TRACE(of.name + ", batch " + std::to_string(size) + (training ? "" : ", evaluation"));
  auto mlp = test::make(of, {.seed = kSeed, .place = kDevice});
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
  test::expect_near(batch.output.values(), output, 2e-5, "output");
  test::expect_near(batch.dx.values(), dx, 6e-5, "input gradient");
  const double tolerance = 2e-5 * std::sqrt(static_cast<double>(size) + 1);
  for (const ParameterInfo& info : mlp->parameters().infos()) {
    test::expect_near(gradient_of(*mlp, info), reference.gradients.at(info.name), tolerance,
                      info.name.c_str());
  }
  EXPECT_TRUE(batch.output.gaps_untouched() && batch.dx.gaps_untouched());
}

TEST(DeviceStack, ForwardAndBackwardEqualTheDoubleReference) {
  for (const StackOf& of : all_stacks()) {
    for (const int64_t size : {0, 1, 7, 65, 200}) expect_reference(of, size, size % 3, true);
    expect_reference(of, 7, 0, false);
  }
}

TEST(DeviceStack, WithoutProductsAllHasTheBitsOfTheCpu) {
  const StackOf of{"norms", 37, {layer_norm(), dropout(0.25), layer_norm(0.1), dropout(0.5)}};
  for (const shardrec_optimizer kind :
       {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
        SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB}) {
    SCOPED_TRACE(static_cast<int>(kind));
    plan::Optimizer optimizer;
    optimizer.kind = kind;
    optimizer.learning_rate = 0.05;
    optimizer.weight_decay = 0.01;
    const auto cpu = test::make(of, {.optimizer = optimizer, .seed = kSeed});
    const auto gpu = test::make(of, {.optimizer = optimizer, .seed = kSeed, .place = kDevice});
    for (unsigned step = 0; step < 4; ++step) {
      Batch here(*cpu, 150, 0, step), there(*gpu, 150, 0, step);
      here.train(*cpu);
      there.train(*gpu);
      ASSERT_TRUE(same_bits(here.output.values(), there.output.values())) << step;
      ASSERT_TRUE(same_bits(here.dx.values(), there.dx.values())) << step;
      cpu->step();
      gpu->step();
    }
    gpu->fetch();
    const int64_t size = cpu->parameters().size();
    const auto floats = [&](const float* from) { return std::vector<float>(from, from + size); };
    EXPECT_TRUE(same_bits(floats(cpu->parameters().values()), floats(gpu->parameters().values())));
    const auto states = static_cast<int>(state_names(kind).size());
    for (int s = 0; s < states; ++s) {
      EXPECT_TRUE(
          same_bits(floats(cpu->parameters().state(s)), floats(gpu->parameters().state(s))));
    }
    EXPECT_EQ(cpu->parameters().steps(), gpu->parameters().steps());
  }
}

TEST(DeviceStack, StepsOfAllKindsFollowTheCpu) {
  const StackOf of = test::stacks().back();
  plan::Optimizer optimizer;
  optimizer.learning_rate = 1e-3;
  const auto cpu = test::make(of, {.optimizer = optimizer, .seed = kSeed});
  const auto gpu = test::make(of, {.optimizer = optimizer, .seed = kSeed, .place = kDevice});
  for (unsigned step = 0; step < 5; ++step) {
    Batch here(*cpu, 70, 0, step), there(*gpu, 70, 0, step);
    here.train(*cpu);
    there.train(*gpu);
    const std::vector<float> expected = here.output.values();
    test::expect_near(there.output.values(), Values(expected.begin(), expected.end()), 1e-4,
                      "output");
    cpu->step();
    gpu->step();
  }
  gpu->fetch();
  const Parameters &here = cpu->parameters(), &there = gpu->parameters();
  test::expect_near({there.values(), static_cast<size_t>(there.size())},
                    Values(here.values(), here.values() + here.size()), 1e-5, "values");
}

// What is added are the bits that the gradients would be overwritten with.
TEST(DeviceStack, AccumulatesTheGradientsOfEachBatch) {
  for (const StackOf& of : {all_stacks().back(), test::stacks().back()}) {
    const auto alone = test::make(of, {.seed = kSeed, .place = kDevice});
    const auto sum = test::make(of, {.seed = kSeed, .accumulate = true, .place = kDevice});
    std::vector<std::vector<float>> expected(alone->parameters().infos().size());
    for (unsigned step = 0; step < 2; ++step) {
      Batch first(*alone, 66, 0, step), second(*sum, 66, 0, step);
      first.train(*alone);
      second.train(*sum);
      for (size_t p = 0; p < expected.size(); ++p) {
        const std::vector<float> own = gradient_of(*alone, alone->parameters().infos()[p]);
        expected[p].resize(own.size());
        for (size_t i = 0; i < own.size(); ++i) expected[p][i] = own[i] + expected[p][i];
        EXPECT_TRUE(same_bits(gradient_of(*sum, sum->parameters().infos()[p]), expected[p]))
            << alone->parameters().infos()[p].name << ", batch " << step;
      }
    }
    sum->zero_gradients();
    for (const ParameterInfo& info : sum->parameters().infos()) {
      EXPECT_TRUE(
          same_bits(gradient_of(*sum, info), std::vector<float>(static_cast<size_t>(info.size))));
    }
  }
}

TEST(DeviceStack, ANaNGoesThroughAReLU) {
  const auto mlp =
      test::make({"relu", 2, {linear(3), linear(1)}}, {.seed = kSeed, .place = kDevice});
  Batch batch(*mlp, 4);
  batch.input.at(2, 0) = std::nanf("");
  batch.train(*mlp);
  EXPECT_TRUE(std::isnan(batch.output.at(2, 0)));
  EXPECT_FALSE(std::isnan(batch.output.at(1, 0)));
}

TEST(DeviceInteraction, HasTheBitsOfTheCpu) {
  for (const auto& [features, dim] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {1, 1}, {5, 16}, {26, 17}}) {
    for (const int64_t batch : {0, 1, 70}) {
      SCOPED_TRACE(std::to_string(features) + " of " + std::to_string(dim) + ", batch " +
                   std::to_string(batch));
      Interaction cpu(features, dim, 1);
      Interaction gpu(features, dim, 1, kDevice);
      std::mt19937 random(3);
      Rows dense(batch, dim, 1), embeddings(batch, features * dim, 2), dy(batch, cpu.outputs());
      dense.fill(random);
      embeddings.fill(random);
      dy.fill(random);
      std::vector<std::vector<float>> results;
      for (Interaction* on : {&cpu, &gpu}) {
        Rows out(batch, cpu.outputs(), 3), to_dense(batch, dim), to_rows(batch, features * dim);
        on->forward(dense.view(), embeddings.view(), out.view());
        on->backward(dy.view(), to_dense.view(), to_rows.view());
        for (Rows* rows : {&out, &to_dense, &to_rows}) results.push_back(rows->values());
      }
      for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(results[i], results[i + 3])) << i;
    }
  }
}

}  // namespace
}  // namespace shardrec::dense
