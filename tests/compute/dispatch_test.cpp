// Which set of kernels is in use.
#include "compute/cpu/kernels/dispatch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>

#include "compute/kernels.h"
#include "core/error.h"

namespace shardrec::compute {
namespace {

TEST(CpuKernels, ScalarIsFirstNamesAreKnownAndDiffer) {
  const std::set<std::string> known = {"scalar", "avx2", "avx512", "neon"};
  std::set<std::string> seen;
  for (int i = 0; i < cpu_kernel_count(); ++i) {
    EXPECT_TRUE(known.contains(cpu_kernels_at(i).name));
    EXPECT_TRUE(seen.insert(cpu_kernels_at(i).name).second);
  }
  EXPECT_STREQ(cpu_kernels_at(0).name, "scalar");
#if defined(__x86_64__)
  EXPECT_EQ(seen.contains("avx2"), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(seen.contains("avx512"), __builtin_cpu_supports("avx512bw") &&
                                         __builtin_cpu_supports("avx512dq") &&
                                         __builtin_cpu_supports("avx512vl"));
#endif
}

TEST(CpuKernels, ForcedSetIsUsedUntilItIsTakenBack) {
  const Kernels& usual = cpu_kernels();
  for (int i = 0; i < cpu_kernel_count(); ++i) {
    force_cpu_kernels(&cpu_kernels_at(i));
    EXPECT_EQ(&cpu_kernels(), &cpu_kernels_at(i));
  }
  force_cpu_kernels(nullptr);
  EXPECT_EQ(&cpu_kernels(), &usual);
}

// In a process of its own: the variable is read once.
class CpuTargetDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  void TearDown() override { unsetenv("SHARDREC_CPU_TARGET"); }
};

TEST_F(CpuTargetDeathTest, EnvironmentNamesTheSet) {
  for (int i = 0; i < cpu_kernel_count(); ++i) {
    const std::string name = cpu_kernels_at(i).name;
    setenv("SHARDREC_CPU_TARGET", name.c_str(), 1);
    EXPECT_EXIT(
        {
          const Kernels& first = cpu_kernels();
          setenv("SHARDREC_CPU_TARGET", name == "scalar" ? "avx2" : "scalar", 1);
          _exit(name == first.name && &cpu_kernels() == &first ? 0 : 1);
        },
        testing::ExitedWithCode(0), "")
        << name;
  }
}

TEST_F(CpuTargetDeathTest, UnknownNameIsRefusedWithWhatThisMachineHas) {
  setenv("SHARDREC_CPU_TARGET", "sse9", 1);
  EXPECT_EXIT(
      {
        try {
          require_cpu_target();
        } catch (const core::Error& error) {
          const bool told = error.status() == SHARDREC_INVALID_ARGUMENT &&
                            error.sentence().find("sse9") != std::string::npos &&
                            error.sentence().find("scalar") != std::string::npos;
          // Code that does not ask works on.
          _exit(told && &cpu_kernels() == &cpu_kernels_at(cpu_kernel_count() - 1) ? 0 : 1);
        }
        _exit(2);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(CpuTargetDeathTest, NoNameAndEachNameAreAccepted) {
  for (int i = -1; i < cpu_kernel_count(); ++i) {
    setenv("SHARDREC_CPU_TARGET", i < 0 ? "" : cpu_kernels_at(i).name, 1);
    EXPECT_EXIT(
        {
          require_cpu_target();
          _exit(0);
        },
        testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace shardrec::compute
