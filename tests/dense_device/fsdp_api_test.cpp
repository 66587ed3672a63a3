// Sharded parameters on devices through the C++ header: views there, stacks of layers there, and checkpoints of them.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::Fsdp;
using shardrec::FsdpOptions;
using shardrec::Matrix;
using shardrec::Mlp;
using shardrec::MlpOptions;
using shardrec::OptimizerOptions;
using shardrec::Vector;

TEST(FsdpOnDeviceApi, ViewsAreOfTheDeviceAndShardsOfTheHost) {
  run(2, [](shardrec::Comm& comm, int rank) {
    Fsdp set(comm, FsdpOptions().device(rank).offload(true));
    const int32_t unit = set.add_unit("unit");
    const int32_t index = set.add_parameter(unit, "weight", 2, 3);
    set.set_optimizer(OptimizerOptions().optimizer("sgd").learning_rate(1));
    set.commit();
    std::array<float, 6> numbers = {1, 2, 3, 4, 5, 6};
    set.set_full(index, SHARDREC_FSDP_VALUES, Vector(numbers));
    set.begin();
    set.unshard(unit);
    set.wait_unshard(unit);
    const shardrec::Tensor values = set.parameter(index);
    EXPECT_EQ(values.get()->device_type, SHARDREC_DEVICE_CUDA);
    EXPECT_EQ(values.get()->device_id, rank);
    EXPECT_EQ(values.get()->shape[1], 3);
    std::array<float, 6> read{};
    shardrec::copy(Matrix(read.data(), 2, 3), values);
    EXPECT_EQ(read, numbers);
    const shardrec::Tensor gradient = set.gradient(index);
    EXPECT_EQ(gradient.get()->device_type, SHARDREC_DEVICE_CUDA);
    EXPECT_EQ(gradient.get()->device_id, rank);
    std::array<float, 6> slopes{};
    slopes.fill(static_cast<float>(2 * rank));
    shardrec::copy(gradient, Matrix(slopes.data(), 2, 3));
    set.mark_ready(unit);
    set.end();
    set.wait();
    set.step();
    int64_t offset = 0;
    EXPECT_EQ(set.shard(index, SHARDREC_FSDP_VALUES, offset).get()->device_type,
              SHARDREC_DEVICE_CPU);
    set.full(index, SHARDREC_FSDP_VALUES, Vector(read));
    for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(read[i], numbers[i] - 1);
    EXPECT_NE(set.statistics_json().find("\"device_bytes\": 512"), std::string::npos)
        << set.statistics_json();
  });
}

// A stack and its set, on a device or not.
struct Layers {
  Layers(shardrec::Comm& comm, int64_t device, int seed)
      : stack(5, MlpOptions().seed(seed).device(device)),
        set(comm, FsdpOptions().device(device).offload(device >= 0)) {
    stack.add_linear(7, SHARDREC_ACTIVATION_RELU);
    stack.add_linear(2, SHARDREC_ACTIVATION_NONE);
    set.add("net", stack);
    set.set_optimizer(OptimizerOptions().optimizer("adam").learning_rate(0.1));
    set.commit();
  }

  std::vector<float> pass(bool trains) {
    std::vector<float> x(15), y(6);
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1F * static_cast<float>(i) - 0.7F;
    set.begin(trains);
    stack.forward(Matrix(x.data(), 3, 5), Matrix(y.data(), 3, 2));
    if (trains) stack.backward(Matrix(y.data(), 3, 2));
    set.end();
    set.wait();
    if (!trains) return y;
    set.step();
    set.zero_gradients();
    return y;
  }

  Mlp stack;
  Fsdp set;
};

TEST(FsdpOnDeviceApi, AStackGoesThroughACheckpointToTheCpuAndBack) {
  Directory directory;
  run(2, [&](shardrec::Comm& comm, int rank) {
    Layers there(comm, rank, 1);
    for (int step = 0; step < 3; ++step) there.pass(true);
    shardrec::Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("net", there.stack);
    checkpoint.commit(3);
    const std::vector<float> outputs = there.pass(false);

    const auto loaded = [&](int64_t device) {
      Layers layers(comm, device, 2);
      shardrec::Checkpoint from(comm, directory.path());
      from.add("net", layers.stack);
      from.open();
      from.load();
      return layers.pass(false);
    };
    EXPECT_EQ(loaded(1 - rank), outputs);
    const std::vector<float> here = loaded(-1);
    for (size_t i = 0; i < outputs.size(); ++i) EXPECT_NEAR(here[i], outputs[i], 1e-5);
  });
}

}  // namespace
}  // namespace shardrec_test
