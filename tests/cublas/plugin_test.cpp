// Loading the plug-in and NVIDIA's library, and the sentences where there is none that is good.
#include <cstdlib>

#include "core/error.h"
#include "products.h"

namespace shardrec::test {
namespace {

const shardrec_cublas_table& table() { return dense::device::table(); }

// Nothing is loaded before a test: some run in processes that find other libraries.
class CublasPlugin : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_emulated()) GTEST_SKIP() << "NVIDIA's library";
  }
};

TEST_F(CublasPlugin, TellsTheVersionOfTheLibrary) {
  EXPECT_STREQ(table().library, "cuBLASLt 13.0.2");
  EXPECT_EQ(table().version, 130002);
  EXPECT_STREQ(table().result_text(SHARDREC_CUBLAS_OK), "success");
  EXPECT_STREQ(table().result_text(SHARDREC_CUBLAS_UNSUPPORTED_PRODUCT),
               "there is no algorithm for the product");
  EXPECT_STREQ(table().result_text(99), "unknown status");
  EXPECT_NE(table().last_error(), nullptr);
}

TEST_F(CublasPlugin, RefusesAnotherAbi) {
  Dl_info plugin{};
  ASSERT_NE(dladdr(std::bit_cast<void*>(table().create), &plugin), 0);
  void* const library = dlopen(plugin.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  const auto fill =
      std::bit_cast<shardrec_cublas_plugin_function>(dlsym(library, "shardrec_cublas_plugin"));
  shardrec_cublas_table other{};
  other.size = sizeof other;
  other.abi = SHARDREC_CUBLAS_ABI + 1;
  EXPECT_EQ(fill(&other), SHARDREC_CUBLAS_ABI_MISMATCH);
  EXPECT_EQ(other.abi, uint32_t{SHARDREC_CUBLAS_ABI});
  other.size = sizeof other - 8;
  EXPECT_EQ(fill(&other), SHARDREC_CUBLAS_ABI_MISMATCH);
  EXPECT_EQ(other.size, sizeof other);
  EXPECT_EQ(fill(&other), SHARDREC_CUBLAS_FILLED);
  EXPECT_STREQ(other.reason, "");
}

// In a process of its own, which has loaded no plug-in.
void expect_refused(const char* variable, const char* value,
                    const std::vector<std::string>& words) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv(variable, value, 1);
        EXPECT_FALSE(dense::device::gemm_on_device_available());
        std::string sentence;
        shardrec_status status = SHARDREC_OK;
        for (int time = 0; time < 2; ++time) {  // the second time as well
          try {
            Gemm gemm(std::make_shared<Stream>(0));
          } catch (const core::Error& error) {
            sentence = error.sentence();
            status = error.status();
          }
          EXPECT_EQ(status, SHARDREC_UNSUPPORTED);
          for (const std::string& word : words) {
            EXPECT_NE(sentence.find(word), std::string::npos) << word << ": " << sentence;
          }
        }
        std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

// With the plug-in for CUDA in a folder of its own.
TEST_F(CublasPlugin, SaysThatThePluginIsMissing) {
  expect_refused("SHARDREC_PLUGIN_PATH", SHARDREC_EMULATED_DEVICES,
                 {"matrix products on devices need the cuBLASLt plug-in libshardrec_cublas.so.1",
                  "install libshardrec-cublas"});
}

TEST_F(CublasPlugin, SaysThatTheLibraryIsMissing) {
  expect_refused(
      "SHARDREC_CUBLASLT_LIBRARY", "/nowhere/libcublasLt.so.13",
      {"needs NVIDIA's cuBLASLt, 12.0 or newer", "/nowhere/libcublasLt.so.13 cannot be loaded",
       "nvidia-cublas", "SHARDREC_CUBLASLT_LIBRARY"});
}

TEST_F(CublasPlugin, SaysThatTheLibraryIsTooOld) {
  expect_refused("SHARDREC_FAKE_CUBLASLT_VERSION", "111103",
                 {"needs NVIDIA's cuBLASLt, 12.0 or newer", "is cuBLASLt 11.11.3", "install"});
}

TEST_F(CublasPlugin, SaysWhichFunctionIsMissing) {
  expect_refused("SHARDREC_CUBLASLT_LIBRARY", SHARDREC_INCOMPLETE_CUBLASLT,
                 {"incomplete/libcublasLt.so.13 has no function cublasLtGetStatusName"});
}

// Where none is named, both are looked for.
TEST_F(CublasPlugin, LooksForBothVersions) {
  if (dlopen("libcublasLt.so.13", RTLD_LAZY) != nullptr ||
      dlopen("libcublasLt.so.12", RTLD_LAZY) != nullptr) {
    GTEST_SKIP() << "this machine has cuBLASLt";
  }
  expect_refused("SHARDREC_CUBLASLT_LIBRARY", "",
                 {"neither libcublasLt.so.13 nor libcublasLt.so.12 can be loaded: "
                  "libcublasLt.so.13: cannot open",
                  "; libcublasLt.so.12: cannot open"});
}

}  // namespace
}  // namespace shardrec::test
