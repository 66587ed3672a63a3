// Probing through the C API: arguments, the cache, and the text. The measurement itself is tested
// in tests/compute, and by the command.
#include "shardrec/probe.h"

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "capi_test.h"
#include "compute/profile_cache.h"
#include "shardrec/shardrec.hpp"

namespace shardrec::test {
namespace {

class ProbeCall : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    setenv("SHARDREC_CACHE_DIR", root_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("SHARDREC_CACHE_DIR");
    std::filesystem::remove_all(root_);
  }

  std::string root_;
  char* text_ = nullptr;
};

TEST_F(ProbeCall, RefusesBadArguments) {
  EXPECT_EQ(shardrec_probe(1, nullptr, nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_probe(-1, nullptr, &text_), SHARDREC_INVALID_ARGUMENT);
  EXPECT_STREQ(shardrec_last_error(), "threads is -1; 0 to 4096 is accepted");
  EXPECT_EQ(shardrec_probe(4097, nullptr, &text_), SHARDREC_INVALID_ARGUMENT);
  shardrec_control* closed = nullptr;
  ASSERT_OK(shardrec_control_create(&closed));
  shardrec_control* copy = closed;
  shardrec_control_destroy(&closed);
  EXPECT_EQ(shardrec_probe(1, copy, &text_), SHARDREC_CLOSED);
  EXPECT_EQ(shardrec_probe_cached(nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(text_, nullptr);
}

TEST_F(ProbeCall, CancelledBeforeItsFirstMeasurementEndsThereAndStoresNothing) {
  Control control;
  ASSERT_OK(shardrec_control_create(control.out()));
  ASSERT_OK(shardrec_control_cancel(control));
  EXPECT_EQ(shardrec_probe(1, control, &text_), SHARDREC_CANCELLED);
  EXPECT_EQ(text_, nullptr);
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

TEST_F(ProbeCall, FindsWhatTheCacheHolds) {
  EXPECT_EQ(shardrec_probe_cached(&text_), SHARDREC_NOT_FOUND);
  EXPECT_NE(std::string(shardrec_last_error()).find(root_), std::string::npos);
  EXPECT_EQ(text_, nullptr);
  compute::MemoryProfile profile{
      .machine = compute::this_machine(), .table_bytes = 1 << 20, .seconds = 1};
  profile.rows.push_back({.row_bytes = 64, .bag_length = 1, .gb_per_second = 3});
  compute::store_profile(core::default_environment(), root_, profile);
  ASSERT_OK(shardrec_probe_cached(&text_));
  EXPECT_EQ(take(text_), compute::profile_to_json(profile));
  EXPECT_EQ(shardrec::probe_cached(), compute::profile_to_json(profile));
}

TEST_F(ProbeCall, WorksWithoutACacheDirectory) {
  const std::string home = getenv("HOME") == nullptr ? "" : getenv("HOME");
  const std::string base = getenv("XDG_CACHE_HOME") == nullptr ? "" : getenv("XDG_CACHE_HOME");
  setenv("SHARDREC_CACHE_DIR", "", 1);
  setenv("XDG_CACHE_HOME", "", 1);
  setenv("HOME", "", 1);
  EXPECT_EQ(shardrec_probe_cached(&text_), SHARDREC_NOT_FOUND);
  EXPECT_NE(std::string(shardrec_last_error()).find("SHARDREC_CACHE_DIR"), std::string::npos);
  setenv("HOME", home.c_str(), 1);
  setenv("XDG_CACHE_HOME", base.c_str(), 1);
}

}  // namespace
}  // namespace shardrec::test
