// Probing through the C API: arguments, the cache, and the text. The measurement itself is tested
// in tests/compute, and by the command.
#include "shardrec/probe.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "capi_test.h"
#include "compute/probe/machine.h"
#include "compute/probe/profile_cache.h"
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
  EXPECT_EQ(shardrec_probe_json("cpu", 1, 0, nullptr, nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_probe_json("cpu", 1, 1, nullptr, &text_), SHARDREC_INVALID_ARGUMENT);
  EXPECT_STREQ(shardrec_last_error(), "threads is 1; with cached 0 is accepted");
  EXPECT_EQ(shardrec_probe_json("cpu", 0, 2, nullptr, &text_), SHARDREC_INVALID_ARGUMENT);
  EXPECT_STREQ(shardrec_last_error(), "cached is 2; 0 or 1 is accepted");
  EXPECT_EQ(shardrec_probe_json("disk", 0, 1, nullptr, &text_), SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "device is \"disk\"; ")) << shardrec_last_error();
  EXPECT_EQ(shardrec_probe_json("cpu", -1, 0, nullptr, &text_), SHARDREC_INVALID_ARGUMENT);
  EXPECT_STREQ(shardrec_last_error(), "threads is -1; 0 to 4096 is accepted");
  EXPECT_EQ(shardrec_probe_json("cpu", 4097, 0, nullptr, &text_), SHARDREC_INVALID_ARGUMENT);
  shardrec_control* closed = nullptr;
  ASSERT_OK(shardrec_control_create(nullptr, &closed));
  shardrec_control* copy = closed;
  shardrec_control_destroy(&closed);
  EXPECT_EQ(shardrec_probe_json(nullptr, 1, 0, copy, &text_), SHARDREC_CLOSED);
  EXPECT_EQ(shardrec_probe_json(nullptr, 0, 1, nullptr, nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(text_, nullptr);
}

TEST_F(ProbeCall, CancelledBeforeItsFirstMeasurementEndsThereAndStoresNothing) {
  Control control;
  ASSERT_OK(shardrec_control_create(nullptr, control.out()));
  ASSERT_OK(shardrec_control_cancel(control));
  EXPECT_EQ(shardrec_probe_json(nullptr, 1, 0, control, &text_), SHARDREC_CANCELLED);
  EXPECT_EQ(text_, nullptr);
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

TEST_F(ProbeCall, FindsWhatTheCacheHolds) {
  EXPECT_EQ(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_), SHARDREC_NOT_FOUND);
  EXPECT_NE(std::string(shardrec_last_error()).find(root_), std::string::npos);
  EXPECT_EQ(text_, nullptr);
  compute::MemoryProfile profile{
      .machine = compute::this_machine(), .table_bytes = 1 << 20, .seconds = 1};
  profile.rows.push_back({.row_bytes = 64, .bag_length = 1, .gb_per_second = 3});
  compute::store_profile(core::default_environment(), root_, profile);
  ASSERT_OK(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_));
  EXPECT_EQ(take(text_), compute::profile_to_json(profile));
  EXPECT_EQ(shardrec::probe_cached_json(), compute::profile_to_json(profile));
}

compute::MemoryProfile example() {
  compute::MemoryProfile profile{
      .machine = compute::this_machine(), .table_bytes = 1 << 20, .seconds = 1};
  profile.copies.push_back({.threads = 1, .gb_per_second = 8.5});
  profile.rows.push_back(
      {.row_bytes = 64, .bag_length = 1, .gb_per_second = 3, .by_hint = {1, 0, 3, 2}});
  return profile;
}

// The text with the first value behind "key": replaced.
std::string with(std::string text, const std::string& key, const std::string& value) {
  const size_t begin = text.find("\"" + key + "\": ") + key.size() + 4;
  EXPECT_GT(begin, key.size() + 4) << key;
  const size_t end = text[begin] == '"' ? text.find('"', begin + 1) + 1
                     : text[begin] == '{' || text[begin] == '['
                         ? text.find(text[begin] == '{' ? '}' : ']', begin) + 1
                         : text.find_first_of(",}\n", begin);
  return text.replace(begin, end - begin, value);
}

TEST_F(ProbeCall, HostileCacheFilesAreNotFoundWithASentenceAndAWarning) {
  const compute::MemoryProfile profile = example();
  const std::string good = compute::profile_to_json(profile);
  const std::string name = compute::profile_file_name(profile.machine);
  std::vector<std::string> bad = {"",
                                  "\n",
                                  "null",
                                  "0",
                                  "\"\"",
                                  "{}",
                                  "[]",
                                  good + good,
                                  std::string(1 << 20, '['),
                                  std::string((1 << 20) + 1, ' ') + good,
                                  std::string(100, '{'),
                                  std::string(64, '\0'),
                                  good.substr(0, good.size() / 2) + "\xFF"};
  for (size_t length = 1; length < good.size(); length += 41) bad.push_back(good.substr(0, length));
  const std::string deep = std::string(31, '[') + std::string(31, ']');
  const std::string deeper = std::string(50000, '[') + std::string(50000, ']');
  const std::vector<std::string> values = {"null",
                                           "true",
                                           "[]",
                                           "{}",
                                           "\"\"",
                                           "\"1\"",
                                           "-1",
                                           "0.5",
                                           "1e999",
                                           "1e308",
                                           "-1e999",
                                           "NaN",
                                           "1e18",
                                           "9223372036854775808",
                                           "-9223372036854775809",
                                           std::string(400, '9'),
                                           "1.",
                                           "01",
                                           deep,
                                           deeper,
                                           "\"\\ud800\"",
                                           "\"\xC0\x80\""};
  for (const char* key : {"version",     "machine",  "cpu",           "processors",
                          "l1_bytes",    "l2_bytes", "l3_bytes",      "instruction_set",
                          "table_bytes", "seconds",  "quiet",         "copies",
                          "rows",        "access",   "row_bytes",     "bag_length",
                          "threads",     "hint",     "distance_rows", "kernel_distance_rows",
                          "kernel_hint", "pages",    "stores",        "gb_per_second",
                          "by_hint"}) {
    for (const std::string& value : values) {
      // What stays a profile, by luck of the draw.
      if (std::string(key) == "quiet" && value == "true") continue;
      if (std::string(key) == "copies" && value == "[]") continue;
      if (std::string(key) == "by_hint" && value == "{}") continue;
      if (std::string(key) == "gb_per_second" && value == "0.5") continue;
      if (std::string(key) == "seconds" && value == "0.5") continue;
      if (std::string(key) == "table_bytes" && value == "1e18") continue;
      bad.push_back(with(good, key, value));
    }
  }
  compute::MemoryProfile foreign = profile;
  foreign.machine.l2_bytes += 1;
  bad.push_back(compute::profile_to_json(foreign));
  compute::MemoryProfile crowded = profile;
  crowded.rows.assign(1025, profile.rows.front());
  bad.push_back(compute::profile_to_json(crowded));
  crowded = profile;
  crowded.rows.clear();
  bad.push_back(compute::profile_to_json(crowded));

  ASSERT_OK(shardrec_log_set_level(SHARDREC_LOG_WARNING));
  for (std::string earlier = "some"; !earlier.empty();) {
    char* message = nullptr;
    ASSERT_OK(shardrec_log_next(0, nullptr, nullptr, &message));
    earlier = take(message);
  }
  for (const std::string& text : bad) {
    const std::string what = text.substr(0, 700);
    std::ofstream(root_ + "/" + name, std::ios::binary) << text;
    EXPECT_EQ(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_), SHARDREC_NOT_FOUND) << what;
    EXPECT_EQ(text_, nullptr) << what;
    EXPECT_TRUE(contains(shardrec_last_error(), root_)) << what;
    shardrec_log_level level{};
    char* message = nullptr;
    ASSERT_OK(shardrec_log_next(0, &level, nullptr, &message));
    const std::string warning = take(message);
    EXPECT_EQ(level, SHARDREC_LOG_WARNING) << what;
    EXPECT_TRUE(contains(warning, name)) << warning << what;
    EXPECT_LT(warning.size(), 1000U) << what;
  }
  std::ofstream(root_ + "/" + name, std::ios::binary) << good;
  EXPECT_OK(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_));
  shardrec_text_free(text_);
}

TEST_F(ProbeCall, NeitherWaitsForNorReadsWhatIsNoFile) {
  const std::string path = root_ + "/" + compute::profile_file_name(compute::this_machine());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_), SHARDREC_NOT_FOUND);
  for (const char* target : {"/dev/zero", "/dev/null", "/", "memory.json"}) {
    std::filesystem::remove(path);
    std::filesystem::create_symlink(target, path);
    EXPECT_EQ(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_), SHARDREC_NOT_FOUND) << target;
  }
  std::filesystem::remove(path);
  std::filesystem::create_symlink(path, path);  // round and round
  EXPECT_EQ(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_), SHARDREC_NOT_FOUND);
  std::ofstream(root_ + "/file") << "no directory";
  setenv("SHARDREC_CACHE_DIR", (root_ + "/file").c_str(), 1);
  EXPECT_EQ(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_), SHARDREC_NOT_FOUND);
  setenv("SHARDREC_CACHE_DIR", std::string(5000, 'd').c_str(), 1);
  EXPECT_EQ(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_), SHARDREC_NOT_FOUND);
  EXPECT_EQ(text_, nullptr);
}

TEST_F(ProbeCall, WorksWithoutACacheDirectory) {
  const std::string home = getenv("HOME") == nullptr ? "" : getenv("HOME");
  const std::string base = getenv("XDG_CACHE_HOME") == nullptr ? "" : getenv("XDG_CACHE_HOME");
  setenv("SHARDREC_CACHE_DIR", "", 1);
  setenv("XDG_CACHE_HOME", "", 1);
  setenv("HOME", "", 1);
  EXPECT_EQ(shardrec_probe_json(nullptr, 0, 1, nullptr, &text_), SHARDREC_NOT_FOUND);
  EXPECT_NE(std::string(shardrec_last_error()).find("SHARDREC_CACHE_DIR"), std::string::npos);
  setenv("HOME", home.c_str(), 1);
  setenv("XDG_CACHE_HOME", base.c_str(), 1);
}

}  // namespace
}  // namespace shardrec::test
