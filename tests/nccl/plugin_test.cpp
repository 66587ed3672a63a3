// Loading the plug-in and NVIDIA's library, and the sentences where there is none that is good.
#include <cstdlib>

#include "core/error.h"
#include "ranks.h"

namespace shardrec::test {
namespace {

TEST(NcclPlugin, TellsTheVersionOfTheLibrary) {
  EXPECT_STREQ(nccl().library, "NCCL 2.32.3");
  EXPECT_EQ(nccl().version, 23203);
  EXPECT_STREQ(nccl().result_text(SHARDREC_NCCL_OK), "no error");
  EXPECT_STREQ(nccl().result_text(99), "unknown result code");
  EXPECT_NE(nccl().last_error(), nullptr);
}

TEST(NcclPlugin, RefusesAnotherAbi) {
  Dl_info plugin{};
  ASSERT_NE(dladdr(std::bit_cast<void*>(nccl().make_id), &plugin), 0);
  void* const library = dlopen(plugin.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  const auto fill =
      std::bit_cast<shardrec_nccl_plugin_function>(dlsym(library, "shardrec_nccl_plugin"));
  shardrec_nccl_table table{};
  table.size = sizeof table;
  table.abi = SHARDREC_NCCL_ABI + 1;
  EXPECT_EQ(fill(&table), SHARDREC_NCCL_ABI_MISMATCH);
  EXPECT_EQ(table.abi, uint32_t{SHARDREC_NCCL_ABI});
  table.size = sizeof table - 8;
  EXPECT_EQ(fill(&table), SHARDREC_NCCL_ABI_MISMATCH);
  EXPECT_EQ(table.size, sizeof table);
  EXPECT_EQ(fill(&table), SHARDREC_NCCL_FILLED);
  EXPECT_STREQ(table.reason, "");
}

// In a process of its own, which has loaded no plug-in.
void expect_refused(const char* variable, const char* value,
                    const std::vector<std::string>& words) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv(variable, value, 1);
        std::string sentence;
        shardrec_status status = SHARDREC_OK;
        for (int time = 0; time < 2; ++time) {  // the second time as well
          try {
            nccl();
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

TEST(NcclPlugin, SaysThatThePluginIsMissing) {
  expect_refused("SHARDREC_PLUGIN_PATH", "/nowhere",
                 {"collectives over NCCL need the NCCL plug-in libshardrec_nccl.so.1",
                  "install libshardrec-nccl"});
}

TEST(NcclPlugin, SaysThatTheLibraryIsMissing) {
  expect_refused("SHARDREC_NCCL_LIBRARY", "/nowhere/libnccl.so.2",
                 {"needs NVIDIA's NCCL, 2.19 or newer", "/nowhere/libnccl.so.2 cannot be loaded",
                  "nvidia-nccl-cu13", "SHARDREC_NCCL_LIBRARY"});
}

TEST(NcclPlugin, SaysThatTheLibraryIsTooOld) {
  expect_refused("SHARDREC_FAKE_NCCL_VERSION", "21805",
                 {"needs NVIDIA's NCCL, 2.19 or newer", "is NCCL 2.18.5", "install"});
  expect_refused("SHARDREC_FAKE_NCCL_VERSION", "2708", {"is NCCL 2.7.8"});
}

TEST(NcclPlugin, SaysWhichFunctionIsMissing) {
  expect_refused("SHARDREC_NCCL_LIBRARY", SHARDREC_INCOMPLETE_NCCL,
                 {"incomplete/libnccl.so.2 has no function ncclGetErrorString"});
}

}  // namespace
}  // namespace shardrec::test
