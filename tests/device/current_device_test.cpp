// The calling thread's current device, which libraries beside the plug-in work on.
#include <thread>

#include "compute/cuda/host/stream.h"
#include "device/in_child.h"
#include "device/of_plugin.h"

namespace shardrec::test {
namespace {

TEST(CurrentDevice, IsTheThreadsUntilItIsLeft) {
  if (!is_on_cpu()) GTEST_SKIP() << "CUDA on the CPU has several devices";
  expect_in_child("SHARDREC_SIMT_DEVICES", "2", [] {
    const auto& table = compute::cuda::host::table();
    const auto current = of_plugin<int()>("simt_current_device");
    EXPECT_EQ(table.enter_device(1), SHARDREC_CUDA_OK);
    EXPECT_EQ(current(), 1);
    compute::cuda::host::Stream(0).wait();  // other calls leave it as it is
    EXPECT_EQ(current(), 1);
    std::thread([&] { EXPECT_EQ(current(), 0); }).join();
    EXPECT_NE(table.enter_device(2), SHARDREC_CUDA_OK);
    EXPECT_EQ(table.enter_device(0), SHARDREC_CUDA_OK);
    EXPECT_EQ(current(), 0);
    table.leave_device();
    EXPECT_EQ(current(), 1);
    table.leave_device();
    EXPECT_EQ(current(), 0);
  });
}

}  // namespace
}  // namespace shardrec::test
