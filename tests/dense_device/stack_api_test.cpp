// Stacks of layers on a device through the C++ header: tensors there and here, views of parameters, streams, DDP,
// checkpoints.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "compute/cuda/host/stream.h"
#include "shardrec/shardrec.hpp"
#include "support/one_nan.h"

namespace shardrec_test {
namespace {

using shardrec::Checkpoint;
using shardrec::Interaction;
using shardrec::Matrix;
using shardrec::Memory;
using shardrec::Mlp;
using shardrec::MlpOptions;
using shardrec::Tensor;

constexpr int64_t kInputs = 9;
constexpr int64_t kBatch = 40;

MlpOptions options(int64_t device) {
  MlpOptions options;
  options.seed(21).threads(1).optimizer("adam").learning_rate(0.01).device(device);
  return options;
}

Mlp make(int64_t device) {
  Mlp mlp(kInputs, options(device));
  mlp.add_cross().add_cross(2).add_dropout(0.25).add_layer_norm(0.001).add_linear(5);
  mlp.add_dropout(0.5).add_linear(1, SHARDREC_ACTIVATION_NONE);
  return mlp;
}

Mlp make_linear(int64_t device) {
  Mlp mlp(kInputs, options(device));
  mlp.add_linear(5).add_linear(1, SHARDREC_ACTIVATION_NONE);
  return mlp;
}

std::vector<float> normal_numbers(size_t count, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

// Training steps [first, last); the outputs of all.
std::vector<float> train(Mlp& mlp, int first, int last, int rank = 0) {
  std::vector<float> all;
  for (int step = first; step < last; ++step) {
    std::vector<float> x = normal_numbers(kBatch * kInputs, 10 * step + rank);
    std::vector<float> dy = normal_numbers(kBatch, 10 * step + rank + 5), y(kBatch);
    mlp.forward({x.data(), kBatch, kInputs}, {y.data(), kBatch, 1});
    all.insert(all.end(), y.begin(), y.end());
    mlp.backward({dy.data(), kBatch, 1});
    mlp.step();
  }
  return all;
}

// What a view shows, wherever it is.
std::vector<float> read(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  shardrec_tensor here = *tensor.get();
  here.device_type = SHARDREC_DEVICE_CPU;
  here.device_id = 0;
  here.data = values.data();
  shardrec::copy(Tensor(here), tensor);
  return values;
}

std::vector<float> values_of(Mlp& mlp) {
  std::vector<float> all;
  for (int32_t p = 0; p < mlp.info().parameters; ++p) {
    const std::vector<float> own = read(mlp.parameter(p).value);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && shardrec::test::same_numbers(a.data(), b.data(), a.size());
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

TEST(StackOnDevice, TensorsThereAndHereGiveTheSameBits) {
  Mlp here = make(0), there = make(0);
  Memory memory(SHARDREC_DEVICE_CUDA, 0, 4 * kBatch * (2 * kInputs + 2));
  const Matrix x = memory.matrix(SHARDREC_FLOAT32, kBatch, kInputs);
  const Matrix dx = memory.matrix(SHARDREC_FLOAT32, kBatch, kInputs, 4 * kBatch * kInputs);
  const Matrix y = memory.matrix(SHARDREC_FLOAT32, kBatch, 1, 8 * kBatch * kInputs);
  const Matrix dy = memory.matrix(SHARDREC_FLOAT32, kBatch, 1, 8 * kBatch * kInputs + 4 * kBatch);
  for (int step = 0; step < 3; ++step) {
    std::vector<float> input = normal_numbers(kBatch * kInputs, step);
    std::vector<float> gradient = normal_numbers(kBatch, step + 50);
    std::vector<float> output(kBatch), to_input(kBatch * kInputs);
    here.forward({input.data(), kBatch, kInputs}, {output.data(), kBatch, 1});
    here.backward({gradient.data(), kBatch, 1}, Matrix{to_input.data(), kBatch, kInputs});
    here.step();
    shardrec::copy(x, Matrix(input.data(), kBatch, kInputs));
    shardrec::copy(dy, Matrix(gradient.data(), kBatch, 1));
    there.forward(x, y);
    there.backward(dy, dx);
    there.step();
    EXPECT_TRUE(same(read(y), output)) << step;
    EXPECT_TRUE(same(read(dx), to_input)) << step;
    // One of them here.
    there.forward(x, {output.data(), kBatch, 1});
    here.forward({input.data(), kBatch, kInputs}, y);
    EXPECT_TRUE(same(read(y), output)) << step;
  }
  EXPECT_TRUE(same(values_of(here), values_of(there)));
}

TEST(StackOnDevice, ViewsOfParametersAreThere) {
  Mlp mlp = make(0), cpu = make(-1);
  EXPECT_TRUE(same(values_of(mlp), values_of(cpu)));  // the same initial values
  const Mlp::Parameter bias = mlp.parameter(mlp.info().parameters - 1);
  EXPECT_EQ(bias.value.get()->device_type, SHARDREC_DEVICE_CUDA);
  EXPECT_EQ(bias.gradient.get()->device_type, SHARDREC_DEVICE_CUDA);
  EXPECT_EQ(mlp.state(0, 1).get()->device_type, SHARDREC_DEVICE_CUDA);
  std::vector<float> x = normal_numbers(kBatch * kInputs, 1), before(kBatch), after(kBatch);
  mlp.set_training(false);
  mlp.forward({x.data(), kBatch, kInputs}, {before.data(), kBatch, 1});
  float moved = read(bias.value)[0] + 4;
  shardrec::copy(bias.value, shardrec::Vector(&moved, 1));
  mlp.forward({x.data(), kBatch, kInputs}, {after.data(), kBatch, 1});
  for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(after[i], before[i] + 4, 1e-5F);
}

TEST(StackOnDevice, FollowsTheCpuWithinRounding) {
  Mlp gpu = make(0), cpu = make(-1);
  expect_near(train(gpu, 0, 4), train(cpu, 0, 4), 1e-3F);
  expect_near(values_of(gpu), values_of(cpu), 1e-3F);
}

TEST(StackOnDevice, DdpGivesAllRanksTheMeanGradients) {
  for (const int64_t first : {-1, 0}) {
    std::vector<std::vector<float>> values(2);
    run(2, [&](shardrec::Comm& comm, int rank) {
      Mlp mlp = make(first < 0 ? -1 : rank);
      shardrec::Ddp ddp(comm);
      ddp.add("stack", mlp);
      ddp.commit();
      for (int step = 0; step < 3; ++step) {
        std::vector<float> x = normal_numbers(kBatch * kInputs, 10 * step + rank);
        std::vector<float> dy = normal_numbers(kBatch, 10 * step + rank + 5), y(kBatch);
        mlp.forward({x.data(), kBatch, kInputs}, {y.data(), kBatch, 1});
        ddp.begin();
        mlp.backward({dy.data(), kBatch, 1});
        ddp.end();
        ddp.wait();
        mlp.step();
      }
      ddp.check_equal();
      values[static_cast<size_t>(rank)] = values_of(mlp);
      comm.close();
    });
    EXPECT_TRUE(same(values[0], values[1]));
    static std::vector<float> of_cpu;
    if (first < 0) {
      of_cpu = values[0];
    } else {
      expect_near(values[0], of_cpu, 1e-3F);
    }
  }
}

// What a set of DDP parameters does to stacks: the numbers of the CPU, and equal ones on all ranks. use(ddp, mlp, train one
// batch).
using TrainBatch = std::function<void(int step)>;
template <class Use>
void expect_as_on_the_cpu(MlpOptions& (*set)(MlpOptions&), const Use& use) {
  std::array<std::vector<float>, 4> values;  // of both ranks on the CPU, then on devices
  for (const bool on_device : {false, true}) {
    run(2, [&](shardrec::Comm& comm, int rank) {
      MlpOptions given = options(on_device ? rank : -1);
      Mlp mlp(kInputs, set(given));
      mlp.add_linear(7).add_layer_norm(0.01).add_linear(1, SHARDREC_ACTIVATION_NONE);
      const TrainBatch train_batch = [&](int step) {
        std::vector<float> x = normal_numbers(kBatch * kInputs, 10 * step + rank);
        std::vector<float> dy = normal_numbers(kBatch, 10 * step + rank + 5), y(kBatch);
        mlp.forward({x.data(), kBatch, kInputs}, {y.data(), kBatch, 1});
        mlp.backward({dy.data(), kBatch, 1});
      };
      use(comm, mlp, train_batch);
      values[static_cast<size_t>(2 * on_device + rank)] = values_of(mlp);
      comm.close();
    });
  }
  EXPECT_TRUE(same(values[0], values[1]));
  EXPECT_TRUE(same(values[2], values[3]));
  expect_near(values[2], values[0], 1e-4F);
}

MlpOptions& as_it_is(MlpOptions& given) { return given; }
MlpOptions& accumulating(MlpOptions& given) { return given.accumulate_gradients(true); }

TEST(StackOnDevice, AnOptimizerOfTheSetStepsTheDevicesParameters) {
  for (const bool in_backward : {false, true}) {
    expect_as_on_the_cpu(
        &as_it_is, [&](shardrec::Comm& comm, Mlp& mlp, const TrainBatch& train_batch) {
          shardrec::Ddp ddp(comm, shardrec::DdpOptions().step_in_backward(in_backward));
          ddp.add("stack", mlp);
          ddp.set_optimizer(shardrec::OptimizerOptions().optimizer("sgd").learning_rate(0.1));
          ddp.commit();
          const Tensor bias = mlp.parameter(1).value;  // is written after the set has begun
          std::vector<float> seven(static_cast<size_t>(bias.elements()), 0.7F);
          shardrec::copy(bias, shardrec::Vector(seven));
          for (int step = 0; step < 3; ++step) {
            ddp.begin();
            train_batch(step);
            ddp.end();
            ddp.wait();
            if (!in_backward) ddp.step();
          }
          ddp.check_equal();
        });
  }
}

TEST(StackOnDevice, GradientsOfASetAreTheStacksAfterIt) {
  expect_as_on_the_cpu(&as_it_is,
                       [](shardrec::Comm& comm, Mlp& mlp, const TrainBatch& train_batch) {
                         {
                           shardrec::Ddp ddp(comm);
                           ddp.add("stack", mlp);
                           ddp.commit();
                           ddp.begin();
                           train_batch(0);
                           ddp.end();
                           ddp.wait();
                           ddp.clip_gradients(SHARDREC_CLIP_L2, 0.5);
                         }
                         mlp.step();
                       });
}

TEST(StackOnDevice, GradientsAddUpBeforeInAndBehindASet) {
  expect_as_on_the_cpu(&accumulating,
                       [](shardrec::Comm& comm, Mlp& mlp, const TrainBatch& train_batch) {
                         train_batch(0);
                         {
                           shardrec::Ddp ddp(comm);
                           ddp.add("stack", mlp);
                           ddp.commit();
                           ddp.begin(false);
                           train_batch(1);
                           ddp.end();
                           ddp.begin();
                           train_batch(2);
                           ddp.end();
                           ddp.wait();
                           ddp.clip_gradients(SHARDREC_CLIP_L2, 0.1);
                           ddp.begin();
                           train_batch(4);
                           ddp.end();
                           ddp.wait();
                           mlp.step();
                         }
                         mlp.zero_gradients();
                         train_batch(3);
                         train_batch(3);
                         shardrec::Ddp ddp(comm);
                         ddp.add("stack", mlp);
                         ddp.commit();
                         ddp.all_reduce();
                         mlp.step();
                       });
}

TEST(StackOnDevice, ASetZeroesTheGradientsThatAreAddedToNext) {
  expect_as_on_the_cpu(&accumulating,
                       [](shardrec::Comm& comm, Mlp& mlp, const TrainBatch& train_batch) {
                         shardrec::Ddp ddp(comm);
                         ddp.add("stack", mlp);
                         ddp.commit();
                         for (int step = 0; step < 3; ++step) {
                           ddp.begin();
                           train_batch(step);
                           ddp.end();
                           ddp.wait();
                           mlp.step();
                           ddp.zero_gradients();
                         }
                       });
}

TEST(StackOnDevice, WorksInTheOrderOfTheCallersStream) {
  shardrec::compute::cuda::host::Stream stream(0);
  Mlp in_stream(kInputs, options(0).stream(stream.number())), legacy = make_linear(0);
  in_stream.add_linear(5).add_linear(1, SHARDREC_ACTIVATION_NONE);
  Memory memory(SHARDREC_DEVICE_CUDA, 0, 4 * kBatch * (2 * kInputs + 2));
  const Matrix x = memory.matrix(SHARDREC_FLOAT32, kBatch, kInputs);
  const Matrix y = memory.matrix(SHARDREC_FLOAT32, kBatch, 1, 4 * kBatch * kInputs);
  const Matrix dy = memory.matrix(SHARDREC_FLOAT32, kBatch, 1, 4 * kBatch * (kInputs + 1));
  const Matrix dx = memory.matrix(SHARDREC_FLOAT32, kBatch, kInputs, 4 * kBatch * (kInputs + 2));
  for (int step = 0; step < 5; ++step) {
    std::vector<float> input = normal_numbers(kBatch * kInputs, step), output(kBatch);
    std::vector<float> gradient = normal_numbers(kBatch, step + 50), there(kBatch);
    // Overwritten at once by what the stream holds next.
    shardrec::copy(x, Matrix(input.data(), kBatch, kInputs), stream.number());
    shardrec::copy(dy, Matrix(gradient.data(), kBatch, 1), stream.number());
    in_stream.forward(x, y);
    in_stream.backward(dy, dx);
    in_stream.step();
    shardrec::copy(Matrix(there.data(), kBatch, 1), y, stream.number());
    legacy.forward({input.data(), kBatch, kInputs}, {output.data(), kBatch, 1});
    legacy.backward({gradient.data(), kBatch, 1});
    legacy.step();
    EXPECT_TRUE(same(there, output)) << step;
  }
  EXPECT_TRUE(same(values_of(in_stream), values_of(legacy)));
  Mlp nowhere(kInputs, options(0).stream(stream.number() + 1));
  nowhere.add_linear(1);
  std::vector<float> input(kInputs), output(1);
  EXPECT_EQ(status_of([&] { nowhere.forward({input.data(), 1, kInputs}, {output.data(), 1, 1}); }),
            SHARDREC_INVALID_ARGUMENT);
}

// Saved from one place, gone on with in the other.
TEST(StackOnDevice, CheckpointsAreThoseOfTheCpu) {
  for (const int64_t from : {-1, 0}) {
    Directory directory;
    std::vector<float> values, expected;
    run(1, [&](shardrec::Comm& comm, int) {
      Mlp mlp = make(from);
      (void)train(mlp, 0, 3);
      Checkpoint checkpoint(comm, directory.path());
      checkpoint.add("layers", mlp);
      checkpoint.commit(3);
      values = values_of(mlp);
      expected = train(mlp, 3, 6);
    });
    run(1, [&](shardrec::Comm& comm, int) {
      Mlp other = make(-1 - from), mlp = make(from);
      (void)train(other, 0, 1);
      (void)train(mlp, 0, 2);
      Checkpoint checkpoint(comm, directory.path());
      checkpoint.add("layers", other);
      checkpoint.open();
      checkpoint.load();
      EXPECT_TRUE(same(values_of(other), values));
      expect_near(train(other, 3, 6), expected, 1e-3F);
      Checkpoint again(comm, directory.path());
      again.add("layers", mlp);
      again.open();
      again.load();
      EXPECT_TRUE(same(train(mlp, 3, 6), expected)) << "in the same place, the same bits";
    });
  }
}

TEST(StackOnDevice, WhatIsElsewhereIsRefused) {
  EXPECT_EQ(status_of([] { Mlp mlp(4, MlpOptions().device(1000)); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([] { Interaction none(4, 4, MlpOptions().device(1000)); }),
            SHARDREC_INVALID_ARGUMENT);
  Mlp cpu = make(-1), gpu = make(0);
  Memory other(SHARDREC_DEVICE_CUDA, 1, 4 * kBatch * kInputs);
  std::vector<float> y(kBatch);
  const Matrix x = other.matrix(SHARDREC_FLOAT32, kBatch, kInputs);
  const auto forward = [&](Mlp& mlp) {
    return status_of([&] { mlp.forward(x, {y.data(), kBatch, 1}); });
  };
  EXPECT_EQ(forward(cpu), SHARDREC_UNSUPPORTED);
  EXPECT_EQ(forward(gpu), SHARDREC_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shardrec_test
