// The calling thread's current device, which libraries beside the plug-in work on.
#include <thread>

#include "compute/cuda/host/stream.h"
#include "device/in_child.h"
#include "device/of_plugin.h"

namespace shardrec::test {
namespace {

TEST(CurrentDevice, IsSetForTheThreadAndStays) {
  if (!is_on_cpu()) GTEST_SKIP() << "CUDA on the CPU has several devices";
  expect_in_child("SHARDREC_SIMT_DEVICES", "2", [] {
    const auto& table = compute::cuda::host::table();
    const auto current = of_plugin<int()>("simt_current_device");
    int32_t previous = -1;
    EXPECT_EQ(table.set_device(1, &previous), SHARDREC_CUDA_OK);
    EXPECT_EQ(previous, 0);
    EXPECT_EQ(current(), 1);
    compute::cuda::host::Stream(0).wait();  // other calls leave it as it is
    EXPECT_EQ(current(), 1);
    std::thread([&] { EXPECT_EQ(current(), 0); }).join();
    EXPECT_NE(table.set_device(2, &previous), SHARDREC_CUDA_OK);
    EXPECT_EQ(previous, 1);
    EXPECT_EQ(table.set_device(0, &previous), SHARDREC_CUDA_OK);
    EXPECT_EQ(current(), 0);
  });
}

}  // namespace
}  // namespace shardrec::test
