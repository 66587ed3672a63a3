#include "dense/gemm.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"

namespace shardrec::dense {
namespace {

TEST(Gemm, EqualsTheDoubleReferenceForAllTransposesAndSizes) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {3, 5, 7}, {64, 1, 33}, {128, 17, 300}, {5, 64, 0}, {0, 4, 4}, {4, 0, 4}}) {
    for (const int transpose : {0, 1, 2, 3}) {
      for (const float beta : {0.0F, 1.0F}) {
        SCOPED_TRACE(testing::Message() << m << " " << n << " " << k << " transpose " << transpose
                                        << " beta " << beta);
        const bool ta = (transpose & 1) != 0, tb = (transpose & 2) != 0;
        const int64_t lda = (ta ? m : k) + 2, ldb = (tb ? k : n) + 1, ldc = n + 3;
        std::vector<float> a(static_cast<size_t>((ta ? k : m) * lda) + 1);
        std::vector<float> b(static_cast<size_t>((tb ? n : k) * ldb) + 1);
        std::vector<float> c(static_cast<size_t>(m * ldc) + 1);
        for (auto* values : {&a, &b, &c}) {
          for (float& value : *values) value = normal(random);
        }
        const std::vector<float> before = c;
        const shardrec_gemm job{.m = m,
                                .n = n,
                                .k = k,
                                .a = a.data(),
                                .b = b.data(),
                                .c = c.data(),
                                .lda = lda,
                                .ldb = ldb,
                                .ldc = ldc,
                                .beta = beta,
                                .transpose_a = ta,
                                .transpose_b = tb};
        gemm().sgemm(&job);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < ldc; ++j) {
            const auto at = static_cast<size_t>(i * ldc + j);
            double expected = j < n ? beta * double{before[at]} : before[at];
            for (int64_t l = 0; j < n && l < k; ++l) {
              expected += double{a[static_cast<size_t>(ta ? l * lda + i : i * lda + l)]} *
                          b[static_cast<size_t>(tb ? j * ldb + l : l * ldb + j)];
            }
            ASSERT_NEAR(c[at], expected, 2e-5 + 1e-6 * static_cast<double>(k)) << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(Gemm, ThePluginNamesItsLibrary) {
  ASSERT_TRUE(gemm_available());
  EXPECT_NE(std::strstr(gemm().library, "OpenBLAS"), nullptr) << gemm().library;
  EXPECT_EQ(gemm().abi, static_cast<uint32_t>(SHARDREC_GEMM_ABI));
}

// OpenBLAS's serial build hands out work buffers without a lock of its own: without one in the
// plug-in some of these products are wrong.
TEST(Gemm, ProductsOfTwoThreadsDoNotMixUp) {
  constexpr int64_t kRows = 128, kCols = 64, kInner = 52;
  const auto count_wrong = [](unsigned seed, int* wrong) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    std::vector<float> a(kRows * kInner), b(kCols * kInner), c(kRows * kCols), first;
    for (auto* values : {&a, &b}) {
      for (float& value : *values) value = normal(random);
    }
    const shardrec_gemm job{.m = kRows,
                            .n = kCols,
                            .k = kInner,
                            .a = a.data(),
                            .b = b.data(),
                            .c = c.data(),
                            .lda = kInner,
                            .ldb = kInner,
                            .ldc = kCols,
                            .beta = 0,
                            .transpose_a = 0,
                            .transpose_b = 1};
    for (int i = 0; i < 50000; ++i) {
      gemm().sgemm(&job);
      if (i == 0) first = c;
      if (c != first) ++*wrong;
    }
  };
  int wrong[2] = {0, 0};
  {
    std::jthread other(count_wrong, 1, &wrong[1]);
    count_wrong(2, &wrong[0]);
  }
  EXPECT_EQ(wrong[0], 0);
  EXPECT_EQ(wrong[1], 0);
}

// More threads than OpenBLAS has work buffers.
TEST(Gemm, ManyThreadsAtOnceComputeTheSame) {
  constexpr int64_t kSize = 96;
  const std::vector<float> a(kSize * kSize, 1), b(kSize * kSize, 2);
  std::vector<int> wrong(300);
  std::vector<std::thread> threads;
  for (int& bad : wrong) {
    threads.emplace_back([&] {
      std::vector<float> c(kSize * kSize);
      const shardrec_gemm job{.m = kSize,
                              .n = kSize,
                              .k = kSize,
                              .a = a.data(),
                              .b = b.data(),
                              .c = c.data(),
                              .lda = kSize,
                              .ldb = kSize,
                              .ldc = kSize,
                              .beta = 0,
                              .transpose_a = 0,
                              .transpose_b = 0};
      for (int i = 0; i < 10; ++i) gemm().sgemm(&job);
      for (const float value : c) bad += value == 2 * kSize ? 0 : 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(300));
}

// Each in a process of its own, in which nothing was loaded yet: prints how gemm() ends, and exits
// with its status.
[[noreturn]] void load_from(const std::string& folders) {
  setenv("SHARDREC_PLUGIN_PATH", folders.c_str(), 1);
  try {
    std::cerr << gemm().library << std::endl;
    std::_Exit(SHARDREC_OK);
  } catch (const core::Error& error) {
    std::cerr << error.sentence() << std::endl;
    std::_Exit(error.status());
  }
}

class GemmPlugin : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(GemmPlugin, AMissingPluginIsUnsupportedAndTheSentenceSaysWhatToInstall) {
  EXPECT_EXIT(load_from("/nonexistent/plugins:/proc"),
              testing::ExitedWithCode(SHARDREC_UNSUPPORTED),
              "/nonexistent/plugins/libshardrec_openblas.so.1, /proc/libshardrec_openblas.so.1.*"
              "libopenblas-serial-dev");
}

TEST_F(GemmPlugin, APluginOfAnotherAbiIsUnsupportedAndTheSentenceNamesBoth) {
  EXPECT_EXIT(load_from(SHARDREC_TEST_OTHER_ABI), testing::ExitedWithCode(SHARDREC_UNSUPPORTED),
              "has ABI 77 .*this library needs ABI 1 ");
}

TEST_F(GemmPlugin, AFileThatIsNoPluginIsUnsupported) {
  EXPECT_EXIT(load_from(SHARDREC_TEST_NO_PLUGIN), testing::ExitedWithCode(SHARDREC_UNSUPPORTED),
              "cannot be loaded");
}

TEST_F(GemmPlugin, TheFoldersOfTheEnvironmentAreSearchedInOrder) {
  EXPECT_EXIT(load_from("/nonexistent::" SHARDREC_TEST_PLUGINS),
              testing::ExitedWithCode(SHARDREC_OK), "OpenBLAS");
}

}  // namespace
}  // namespace shardrec::dense
