// Sets of DDP parameters on devices through the C++ header: tensors of the caller's on the device of each rank.
#include <gtest/gtest.h>

#include <array>

#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::Ddp;
using shardrec::Memory;
using shardrec::Vector;

using Numbers = std::array<float, 3>;

Numbers read(const shardrec::Tensor& tensor) {
  Numbers numbers{};
  shardrec::copy(Vector(numbers), tensor);
  return numbers;
}

TEST(DdpOnDeviceApi, ParametersAndGradientsAreTensorsOfTheDeviceOfTheRank) {
  shardrec::run(2, [](shardrec::Comm& comm) {
    const int32_t device = comm.rank();
    const Memory memory(SHARDREC_DEVICE_CUDA, device, 64);
    const Vector weights = memory.vector(SHARDREC_FLOAT32, 3);
    const Vector gradient = memory.vector(SHARDREC_FLOAT32, 3, 32);
    Numbers own = {1, 2, static_cast<float>(device)};
    shardrec::copy(weights, Vector(own));
    shardrec::copy(gradient, Vector(own));

    Ddp ddp(comm);
    ddp.add("given", weights, gradient);
    const int32_t made = ddp.add("made", weights);
    ddp.set_optimizer(shardrec::OptimizerOptions().optimizer("momentum_sgd").learning_rate(1));
    ddp.commit();
    EXPECT_EQ(read(weights), (Numbers{1, 2, 0}));  // rank 0's
    const shardrec::Tensor view = ddp.gradient(made);
    EXPECT_EQ(view.get()->device_type, SHARDREC_DEVICE_CUDA);
    EXPECT_EQ(view.get()->device_id, device);
    EXPECT_EQ(ddp.state(made, 0).get()->device_id, device);
    EXPECT_EQ(read(view), Numbers{});

    ddp.all_reduce();
    EXPECT_EQ(read(gradient), (Numbers{1, 2, 0.5F}));
    ddp.step();
    EXPECT_EQ(read(weights), (Numbers{0, 0, -0.5F}));
    EXPECT_EQ(read(ddp.state(0, 0)), (Numbers{1, 2, 0.5F}));
  });
}

TEST(DdpOnDeviceApi, ParametersOfAnotherDeviceAreRefused) {
  shardrec::run(1, [](shardrec::Comm& comm) {
    const Memory there(SHARDREC_DEVICE_CUDA, 1, 64);
    const Memory elsewhere(SHARDREC_DEVICE_CUDA, 0, 64);
    Ddp ddp(comm);
    ddp.add("first", there.vector(SHARDREC_FLOAT32, 3));
    const Vector other = elsewhere.vector(SHARDREC_FLOAT32, 3);
    EXPECT_EQ(shardrec_ddp_add_parameter(ddp.get(), "second", other.get(), nullptr, nullptr),
              SHARDREC_UNSUPPORTED);
    const Vector mine = there.vector(SHARDREC_FLOAT32, 3, 32);
    EXPECT_EQ(shardrec_ddp_add_parameter(ddp.get(), "third", mine.get(), other.get(), nullptr),
              SHARDREC_INVALID_ARGUMENT);
  });
}

}  // namespace
}  // namespace shardrec_test
