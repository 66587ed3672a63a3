// No step loads a kernel: where collections are on devices of CUDA on the CPU (choice.cpp), those that the
// tests of a program launch have come onto the device when it was opened.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "device/of_plugin.h"

namespace shardrec::test {
namespace {

class LoadedKernels : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("SHARDREC_TEST_BACKEND");
    if (name == nullptr || std::strcmp(name, "cuda") != 0) return;
    late_ = of_plugin<int64_t()>("simt_kernels_loaded_by_launches");
    if (late_ == nullptr) return;  // a GPU
    const compute::cuda::host::Table& table = compute::cuda::host::table();
    int32_t devices = 0;
    compute::cuda::host::require(table.count_devices(&devices), "count its devices");
    for (int32_t device = 0; device < devices; ++device) {
      compute::cuda::host::require(table.open_device(device), "open a device");
    }
    before_ = late_();
  }
  void TearDown() override {
    if (late_ == nullptr) return;
    EXPECT_EQ(late_(), before_) << "kernels were loaded by their first launch";
  }

 private:
  int64_t (*late_)() = nullptr;
  int64_t before_ = 0;
};

const auto* const environment = ::testing::AddGlobalTestEnvironment(new LoadedKernels);

}  // namespace
}  // namespace shardrec::test
