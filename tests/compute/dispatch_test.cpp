// Which set of kernels is in use, and that none touches memory beyond its rows.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "compute/kernels.h"
#include "compute/update_jobs.h"
#include "core/log.h"

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

TEST_F(CpuTargetDeathTest, UnknownNameMeansTheBestSetWithAWarningInTheLog) {
  setenv("SHARDREC_CPU_TARGET", "sse9", 1);
  EXPECT_EXIT(
      {
        const bool best = &cpu_kernels() == &cpu_kernels_at(cpu_kernel_count() - 1);
        const auto message = core::next_log(std::chrono::milliseconds(0));
        const bool warned = message.has_value() && message->level == SHARDREC_LOG_WARNING &&
                            message->text.find("sse9") != std::string::npos &&
                            message->text.find("scalar") != std::string::npos;
        _exit(best && warned ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Floats that end where memory ends: the page behind them, or in front of them, cannot be touched.
class GuardedFloats {
 public:
  enum class Guard : uint8_t { kBefore, kAfter };

  GuardedFloats(size_t count, Guard guard) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t inside = (count * sizeof(float) + page - 1) / page * page;
    mapped_ = inside + 2 * page;
    mapping_ = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* bytes = static_cast<std::byte*>(mapping_) + page;
    mprotect(bytes, inside, PROT_READ | PROT_WRITE);
    if (guard == Guard::kAfter) bytes += inside - count * sizeof(float);
    floats_ = {static_cast<float*>(static_cast<void*>(bytes)), count};
    std::fill(floats_.begin(), floats_.end(), 1.0F);
  }
  ~GuardedFloats() { munmap(mapping_, mapped_); }
  GuardedFloats(const GuardedFloats&) = delete;
  GuardedFloats& operator=(const GuardedFloats&) = delete;

  float* data() const { return floats_.data(); }

 private:
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
  std::span<float> floats_;
};

class MemoryTouched : public testing::TestWithParam<GuardedFloats::Guard> {};
INSTANTIATE_TEST_SUITE_P(Guards, MemoryTouched,
                         testing::Values(GuardedFloats::Guard::kBefore,
                                         GuardedFloats::Guard::kAfter));

TEST_P(MemoryTouched, ByThePooledLookupIsTheRowsOnly) {
  const std::vector<int64_t> offsets = {0, 2, 2, 5};
  const std::vector<int64_t> ids = {0, 2, 1, 2, 0};
  for (int64_t width = 1; width <= 300; width += width < 70 ? 1 : 13) {
    const auto columns = static_cast<size_t>(width);
    const GuardedFloats table(3 * columns, GetParam());
    const GuardedFloats out(3 * columns, GetParam());
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      cpu_kernels_at(set).pooled_lookup({.table = table.data(),
                                         .stride = columns,
                                         .width = width,
                                         .ids = {.data = ids.data(), .is_64 = true},
                                         .offsets = offsets.data(),
                                         .out = out.data(),
                                         .out_stride = columns},
                                        0, 3);
      EXPECT_EQ(out.data()[0], 2.0F);
      EXPECT_EQ(out.data()[columns], 0.0F);
      EXPECT_EQ(out.data()[3 * columns - 1], 3.0F);
    }
  }
}

TEST_P(MemoryTouched, ByTheRowUpdateIsTheRowsOnly) {
  const std::vector<uint32_t> bags = {0, 0, 1, 1};
  const std::vector<uint32_t> blocks = {0, 1};
  const std::vector<int64_t> run = {0, 1, 4};
  const std::vector<int64_t> rows = {0, 2};
  for (int64_t width = 1; width <= 300; width += width < 70 ? 1 : 13) {
    const auto columns = static_cast<size_t>(width);
    const GuardedFloats gradient(columns, GetParam());
    const std::vector<const float*> gradients = {gradient.data(), gradient.data()};
    const GuardedFloats scratch(row_update_scratch_bytes(width) / sizeof(float), GetParam());
    const GuardedFloats state(3, GetParam());
    const ColumnRange ranges[2] = {{0, width / 2}, {width / 2, width}};
    float* const states[2] = {state.data(), state.data()};
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      const GuardedFloats table(3 * columns, GetParam());
      const RowUpdate job{.table = table.data(),
                          .stride = columns,
                          .width = width,
                          .rows = rows.data(),
                          .run = run.data(),
                          .bags = bags.data(),
                          .gradients = gradients.data(),
                          .blocks = blocks.data(),
                          .step = {.kind = OptimizerKind::kRowwiseAdagrad,
                                   .decay_mode = WeightDecay::kL2,
                                   .learning_rate = 0.1F,
                                   .eps = 1e-8F,
                                   .weight_decay = 0.1F},
                          .state = states,
                          .columns = width == 1 ? ranges + 1 : ranges,
                          .statistics = width == 1 ? 1 : 2};
      auto* bytes = static_cast<std::byte*>(static_cast<void*>(scratch.data()));
      cpu_kernels_at(set).row_update(job, 0, 2, bytes);
      for (size_t c = 0; c < columns; ++c) {
        ASSERT_NE(table.data()[c], 1.0F);
        ASSERT_EQ(table.data()[columns + c], 1.0F);
        ASSERT_NE(table.data()[2 * columns + c], 1.0F);
      }
    }
  }
}

TEST_P(MemoryTouched, ByElementwiseKernelsIsTheColumnsOnly) {
  for (int64_t width = 0; width <= 130; ++width) {
    const GuardedFloats x(static_cast<size_t>(width), GetParam());
    const GuardedFloats y(static_cast<size_t>(width), GetParam());
    for (int set = 0; set < cpu_kernel_count(); ++set) {
      cpu_kernels_at(set).add(x.data(), y.data(), width);
      cpu_kernels_at(set).divide(x.data(), 3, width);
      cpu_kernels_at(set).scale_gradient({.divisor = 3, .max_gradient = 1, .length = 3}, x.data(),
                                         y.data(), width);
    }
  }
}

}  // namespace
}  // namespace shardrec::compute
