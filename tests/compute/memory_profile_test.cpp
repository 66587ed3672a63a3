// The machine's memory profile: its text, its file in the cache, and what kernels make of it.
#include "compute/profile/memory_profile.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compute/probe/machine.h"
#include "compute/probe/profile_cache.h"
#include "compute/profile/prefetch.h"
#include "core/error.h"
#include "core/log.h"

namespace shardrec::compute {
namespace {

MemoryProfile example() {
  MemoryProfile profile{.machine = this_machine(), .table_bytes = 1 << 29, .seconds = 2.125};
  profile.copies = {{1, 30.25}, {2, 41.5}};
  for (const int64_t threads : {1, 2}) {
    for (const int64_t row_bytes : {64, 256, 1024}) {
      for (const int64_t bag : {1, 20}) {
        profile.rows.push_back(
            {.row_bytes = row_bytes,
             .bag_length = bag,
             .threads = threads,
             .hint = bag == 1 ? PrefetchHint::kT0 : PrefetchHint::kT1,
             .distance_rows = 8,
             .kernel = {.hint = row_bytes == 256 ? PrefetchHint::kT0 : PrefetchHint::kT1,
                        .distance_rows = threads == 1 ? 16 : 48},
             .huge_pages = row_bytes != 64,
             .streaming_stores = bag == 1,
             .gb_per_second = 12.75,
             .by_hint = {7, 0, 12.5, 11.25},
             .streaming = bag == 1 ? 12.75 : 0,
             .small_pages = 10});
      }
    }
  }
  profile.rows.push_back({.access = MemoryAccess::kUpdate,
                          .row_bytes = 256,
                          .threads = 2,
                          .hint = PrefetchHint::kNta,
                          .distance_rows = 8,
                          .kernel = {.distance_rows = 24},
                          .gb_per_second = 34});
  return profile;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

shardrec_status status_of(const std::string& text) {
  try {
    profile_from_json(text, "file");
  } catch (const core::Error& error) {
    return error.status();
  }
  return SHARDREC_OK;
}

TEST(MemoryProfile, ReadsBackWhatItWrote) {
  const MemoryProfile profile = example();
  EXPECT_EQ(profile_from_json(profile_to_json(profile), "file"), profile);
}

TEST(MemoryProfile, RefusesWhatNoProbeWrites) {
  const std::string text = profile_to_json(example());
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {R"("version": 4)", R"("version": 1)"},
           {R"("version": 4)", R"("version": "4")"},
           {R"("quiet": true)", R"("quiet": true, "extra": 1)"},
           {R"("distance_rows": 8)", R"("distance_rows": 7)"},
           {R"("distance_rows": 8)", R"("distance_rows": 65)"},
           {R"("version": 4)", R"("version": 3)"},
           {R"("kernel_hint": "t1")", R"("kernel_hint": "nta")"},
           {R"("kernel_distance_rows": 16)", R"("kernel_distance_rows": 7)"},
           {R"("kernel_distance_rows": 16)", R"("kernel_distance_rows": 65)"},
           {R"("hint": "t0")", R"("hint": "t9")"},
           {R"("pages": "small")", R"("pages": "tiny")"},
           {R"("stores": "streaming")", R"("stores": 1)"},
           {R"("gb_per_second": 12.75)", R"("gb_per_second": 0)"},
           {R"("gb_per_second": 12.75)", R"("gb_per_second": -1)"},
           {R"("gb_per_second": 12.75)", R"("gb_per_second": 1e400)"},
           {R"("row_bytes": 64)", R"("row_bytes": 0)"},
           {R"("bag_length": 1,)", R"("bag_length": 0,)"},
           {R"("threads": 2)", R"("threads": 1.5)"},
           {R"("nta": 11.25)", R"("t7": 11.25)"},
           {R"("processors")", R"("cores")"},
           {R"("rows": [)", R"("rows": [], "rest": [)"}}) {
    EXPECT_EQ(status_of(replaced(text, from, to)), SHARDREC_CORRUPT_DATA) << to;
  }
  for (size_t length = 0; length < text.size(); length += 97) {
    EXPECT_EQ(status_of(text.substr(0, length)), SHARDREC_CORRUPT_DATA) << length;
  }
}

TEST(MemoryProfile, ATextWithRandomDamageIsRefusedOrIsAProfile) {
  const std::string good = profile_to_json(example());
  std::mt19937 random(11);
  const auto below = [&](size_t bound) { return random() % bound; };
  int read = 0;
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = good;
    for (size_t damage = 1 + below(3); damage > 0; --damage) {
      const size_t at = below(text.size());
      constexpr std::string_view kMarks = "0123456789-+.eE\"\\{}[]:, \ntfnu\xFF";
      switch (below(4)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text[at] = kMarks[below(kMarks.size())];
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), below(40)));
          break;
        default:
          text.erase(at, below(40));
      }
    }
    try {
      const MemoryProfile profile = profile_from_json(text, "file");
      ++read;
      // Whatever passes is written and read again, and gives distances that kernels take.
      const MemoryProfile again = profile_from_json(profile_to_json(profile), "file");
      ASSERT_EQ(again.rows.size(), profile.rows.size()) << text;
      for (const auto access : {MemoryAccess::kGather, MemoryAccess::kUpdate}) {
        for (const int64_t row_bytes : {int64_t{1}, int64_t{256}, int64_t{1} << 40}) {
          const int64_t distance = prefetch_for(profile, access, row_bytes, 20).distance_rows;
          ASSERT_GE(distance, kLeastPrefetchDistance) << text;
          ASSERT_LE(distance, kMostPrefetchDistance) << text;
        }
      }
    } catch (const core::Error& error) {
      ++refused;
      ASSERT_EQ(error.status(), SHARDREC_CORRUPT_DATA) << error.sentence();
      ASSERT_NE(error.sentence().find("file"), std::string::npos) << error.sentence();
    }
  }
  EXPECT_GT(read, 20);
  EXPECT_GT(refused, 1000);
}

// A folder of its own, and the log emptied before.
class ProfileCache : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    warnings();
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  static int warnings() {
    int count = 0;
    while (const auto message = core::next_log(std::chrono::milliseconds(0))) ++count;
    return count;
  }
  void write(const std::string& text) {
    core::write_file_atomically(environment_, root_, profile_file_name(machine_),
                                std::as_bytes(std::span(text)));
  }
  bool loads() { return load_profile(environment_, root_, machine_).has_value(); }

  core::Environment& environment_ = core::default_environment();
  const Machine machine_ = this_machine();
  std::string root_;
};

TEST_F(ProfileCache, KeepsTheLastProfileOfEachMachineAndNothingElse) {
  const std::string directory = core::join_path(root_, "not/there/yet");
  MemoryProfile profile = example();
  store_profile(environment_, directory, profile);
  profile.seconds = 1.5;
  store_profile(environment_, directory, profile);
  MemoryProfile other = profile;
  other.machine.processors += 1;
  store_profile(environment_, directory, other);
  EXPECT_EQ(load_profile(environment_, directory, machine_), profile);
  EXPECT_EQ(load_profile(environment_, directory, other.machine), other);
  EXPECT_EQ(environment_.list(directory).size(), 2U);
  EXPECT_EQ(warnings(), 0);
}

TEST_F(ProfileCache, IsEmptyWithoutADirectoryOrAFileAndSaysNothing) {
  EXPECT_FALSE(load_profile(environment_, "", machine_).has_value());
  EXPECT_FALSE(load_profile(environment_, core::join_path(root_, "none"), machine_).has_value());
  EXPECT_FALSE(loads());
  EXPECT_EQ(warnings(), 0);
}

TEST_F(ProfileCache, PassesOverBadFilesWithAWarning) {
  const std::string good = profile_to_json(example());
  write(good);
  EXPECT_TRUE(loads());
  EXPECT_EQ(warnings(), 0);
  MemoryProfile foreign = example();
  foreign.machine.cpu += "X";
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("\0\xFF{}", 4),
        good.substr(0, good.size() / 2), good + "x", good + std::string(2 << 20, ' '),
        replaced(good, "\"version\": 4", "\"version\": 1"), profile_to_json(foreign)}) {
    write(bad);
    EXPECT_FALSE(loads()) << bad.substr(0, 100);
    EXPECT_EQ(warnings(), 1) << bad.substr(0, 100);
  }
  std::filesystem::remove(core::join_path(root_, profile_file_name(machine_)));
  std::filesystem::create_directory(core::join_path(root_, profile_file_name(machine_)));
  EXPECT_FALSE(loads());
  EXPECT_EQ(warnings(), 1);
}

TEST_F(ProfileCache, LeavesNoTemporaryFileAfterAFailure) {
  // A directory in its place cannot be replaced.
  const std::string name = profile_file_name(machine_);
  std::filesystem::create_directory(core::join_path(root_, name));
  EXPECT_THROW(store_profile(environment_, root_, example()), core::Error);
  EXPECT_EQ(environment_.list(root_), std::vector<std::string>{name});
}

// A variable of the environment, taken out for the life of this object.
struct Variable {
  explicit Variable(const char* variable) : name(variable) {
    const char* value = getenv(name);
    was_set = value != nullptr;
    if (was_set) before = value;
    unsetenv(name);
  }
  ~Variable() {
    if (was_set) setenv(name, before.c_str(), 1);
  }
  const char* name;
  bool was_set;
  std::string before;
};

TEST_F(ProfileCache, IsWhereTheEnvironmentSays) {
  const Variable own("SHARDREC_CACHE_DIR");
  const Variable base("XDG_CACHE_HOME");
  const Variable home("HOME");
  EXPECT_EQ(profile_directory(), "");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(profile_directory(), "/h/.cache/shardrec");
  setenv("XDG_CACHE_HOME", "relative", 1);  // to be ignored, says its specification
  EXPECT_EQ(profile_directory(), "/h/.cache/shardrec");
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(profile_directory(), "/x/shardrec");
  setenv("SHARDREC_CACHE_DIR", "/own", 1);
  EXPECT_EQ(profile_directory(), "/own");
  setenv("SHARDREC_CACHE_DIR", "", 1);
  EXPECT_EQ(profile_directory(), "/x/shardrec");
  for (const char* name : {"SHARDREC_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}) unsetenv(name);
}

TEST_F(ProfileCache, KeepsQuietProfilesAndWarnsOfWhatItDoesNotKeep) {
  const Variable own("SHARDREC_CACHE_DIR");
  const Variable base("XDG_CACHE_HOME");
  const Variable home("HOME");
  const auto status_of_profile = [&] {
    try {
      (void)require_profile(environment_);
      return SHARDREC_OK;
    } catch (const core::Error& error) {
      return error.status();
    }
  };
  keep_profile(environment_, example());
  EXPECT_EQ(warnings(), 1);  // there is no directory
  EXPECT_EQ(status_of_profile(), SHARDREC_NOT_FOUND);

  setenv("SHARDREC_CACHE_DIR", root_.c_str(), 1);
  MemoryProfile disturbed = example();
  disturbed.quiet = false;
  keep_profile(environment_, disturbed);
  EXPECT_EQ(warnings(), 1);
  EXPECT_EQ(status_of_profile(), SHARDREC_NOT_FOUND);

  keep_profile(environment_, example());
  EXPECT_EQ(warnings(), 0);
  EXPECT_EQ(require_profile(environment_), example());

  const std::string file = core::join_path(root_, "file");
  core::write_file_atomically(environment_, root_, "file", {});
  setenv("SHARDREC_CACHE_DIR", file.c_str(), 1);  // where no directory can be made
  keep_profile(environment_, example());
  EXPECT_EQ(warnings(), 1);
  unsetenv("SHARDREC_CACHE_DIR");
}

TEST(Prefetch, WithoutAProfileIsTheUsualOne) {
  for (const auto access : {MemoryAccess::kGather, MemoryAccess::kUpdate}) {
    for (const auto& [row_bytes, distance] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 64}, {64, 64}, {256, 64}, {512, 32}, {1024, 16}, {2048, 8}, {1 << 20, 8}}) {
      const Prefetch usual{.hint = PrefetchHint::kT1, .distance_rows = distance};
      EXPECT_EQ(prefetch_for({}, access, row_bytes, 1), usual);
    }
  }
}

TEST(Prefetch, IsThatOfTheNearestMeasurementWithTheMostThreads) {
  MemoryProfile profile = example();
  for (RowRate& rate : profile.rows) {
    if (rate.bag_length == 20) rate.kernel.distance_rows += 2;
  }
  const auto way = [&](int64_t row_bytes, int64_t bag) {
    return prefetch_for(profile, MemoryAccess::kGather, row_bytes, bag);
  };
  const auto gather = [&](int64_t row_bytes, int64_t bag) {
    return way(row_bytes, bag).distance_rows;
  };
  EXPECT_EQ(way(256, 1).hint, PrefetchHint::kT0);
  EXPECT_EQ(way(300, 20).hint, PrefetchHint::kT0);
  EXPECT_EQ(way(64, 1).hint, PrefetchHint::kT1);
  EXPECT_EQ(gather(256, 1), 48);
  EXPECT_EQ(gather(256, 4), 48);
  EXPECT_EQ(gather(256, 5), 50);
  EXPECT_EQ(gather(256, 1000), 50);
  // As many bytes ahead as were measured, within what kernels take.
  EXPECT_EQ(gather(384, 1), 32);
  EXPECT_EQ(gather(200, 1), 61);
  EXPECT_EQ(gather(4, 20), kMostPrefetchDistance);
  EXPECT_EQ(gather(1 << 20, 20), kLeastPrefetchDistance);
  EXPECT_EQ(prefetch_for(profile, MemoryAccess::kUpdate, 256, 1).distance_rows, 24);
}

TEST(Prefetch, OfUpdatesIsThatOfTheProfileWhereRowsAreFarApart) {
  MemoryProfile profile = example();
  const Prefetch measured{.hint = PrefetchHint::kT0, .distance_rows = 24};
  profile.rows.back().kernel = measured;
  EXPECT_EQ(prefetch_for_update(profile, 256, kFarApart), measured);
  EXPECT_EQ(prefetch_for_update(profile, 256, int64_t{1} << 40), measured);
  for (const int64_t close : {int64_t{0}, int64_t{256}, kFarApart - 1}) {
    EXPECT_EQ(prefetch_for_update(profile, 256, close), usual_prefetch(256));
  }
}

TEST(Prefetch, OfThisProcessIsWithinWhatKernelsTake) {
  const MemoryProfile& profile = memory_profile();
  EXPECT_EQ(&profile, &profile_in_use());
  for (int64_t row_bytes = 4; row_bytes < 1 << 16; row_bytes *= 3) {
    for (const auto access : {MemoryAccess::kGather, MemoryAccess::kUpdate}) {
      const Prefetch way = prefetch_for(access, row_bytes, 20);
      EXPECT_GE(way.distance_rows, kLeastPrefetchDistance);
      EXPECT_LE(way.distance_rows, kMostPrefetchDistance);
      EXPECT_EQ(way, prefetch_for(profile, access, row_bytes, 20));
    }
  }
}

}  // namespace
}  // namespace shardrec::compute
