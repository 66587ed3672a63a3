// Memory runs out at the k-th allocation of a probe, of what is kept of it, and of what is read
// back, for every k: OUT_OF_MEMORY or the whole result, never something between.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <new>
#include <string>

#include "compute/probe/kernels.h"
#include "compute/probe/machine.h"
#include "compute/probe/probe.h"
#include "compute/probe/profile_cache.h"
#include "core/error.h"
#include "core/log.h"
#include "faults/failing_allocator.h"
#include "shardrec/probe.h"

namespace shardrec::test {
namespace {

using compute::MemoryProfile;

// No longer than one look at each case takes.
constexpr compute::probe::ProbeSizes kShortest = {.table = 1 << 20,
                                                  .outputs = 1 << 18,
                                                  .rough = 16 << 10,
                                                  .fine = 16 << 10,
                                                  .updates = 16 << 10,
                                                  .fine_rounds = 0,
                                                  .rough_time = std::chrono::milliseconds(0),
                                                  .fine_time = std::chrono::milliseconds(0),
                                                  .small_pages_time = std::chrono::milliseconds(0)};

MemoryProfile example() {
  MemoryProfile profile{.machine = compute::this_machine(), .table_bytes = 1 << 20, .seconds = 1};
  for (const int64_t threads : {1, 2}) {
    profile.copies.push_back({threads, 20});
    profile.rows.push_back(
        {.row_bytes = 64, .bag_length = 20, .threads = threads, .gb_per_second = 10});
  }
  return profile;
}

class ProbeShortage : public ::testing::TestWithParam<Shortage> {
 protected:
  void SetUp() override {
#ifdef SHARDREC_THREAD_SANITIZER
    GTEST_SKIP() << "the thread sanitizer's operator new cannot be replaced";
#endif
    std::string pattern = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    setenv("SHARDREC_CACHE_DIR", root_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("SHARDREC_CACHE_DIR");
    if (!root_.empty()) std::filesystem::remove_all(root_);
  }

  // Runs it for every k until nothing fails; how often it ran.
  int64_t for_each_allocation(const std::function<void(int64_t k)>& run) {
    int64_t k = 0;
    do {
      fail_allocation(++k, GetParam());
      run(k);
    } while (end_shortage() && !HasFailure());
    return k;
  }
  // Of the call that has just failed, or not.
  static shardrec_status ended(shardrec_status status, int64_t k) {
    const NoShortage pause;
    EXPECT_TRUE(status != SHARDREC_OUT_OF_MEMORY || allocation_has_failed()) << k;
    EXPECT_TRUE(status == SHARDREC_OK || *shardrec_last_error() != '\0') << k;
    return status;
  }
  static int messages() {
    int count = 0;
    while (core::next_log(std::chrono::milliseconds(0))) ++count;
    return count;
  }

  std::string root_;
};

// With one thread: oneTBB does not survive a worker that cannot be started.
TEST_P(ProbeShortage, AMeasurementIsWholeOrThereIsNone) {
  int64_t whole = 0;
  const int64_t runs = for_each_allocation([&](int64_t k) {
    try {
      const MemoryProfile profile = compute::probe::probe_memory(1, nullptr, kShortest);
      const NoShortage pause;
      EXPECT_EQ(profile.machine, compute::this_machine()) << k;
      EXPECT_EQ(profile.copies.size(), 1U) << k;
      EXPECT_EQ(profile.rows.size(), compute::probe::kProbeRowSizes * 3) << k;
      for (const auto& rate : profile.rows) EXPECT_GT(rate.gb_per_second, 0) << k;
      ++whole;
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(allocation_has_failed()) << k;
    } catch (const core::Error& error) {
      const NoShortage pause;
      EXPECT_EQ(error.status(), SHARDREC_OUT_OF_MEMORY) << k << ": " << error.sentence();
    }
  });
  EXPECT_EQ(whole, 1);
  EXPECT_GT(runs, 60);
}

TEST_P(ProbeShortage, TheCallSaysOutOfMemoryAndKeepsNothing) {
  shardrec_control* control = nullptr;
  ASSERT_EQ(shardrec_control_create(nullptr, &control), SHARDREC_OK);
  ASSERT_EQ(shardrec_control_cancel(control), SHARDREC_OK);  // before its first measurement
  int64_t cancelled = 0;
  const int64_t runs = for_each_allocation([&](int64_t k) {
    char* text = nullptr;
    const shardrec_status status = ended(shardrec_probe_json("cpu", 1, 0, control, &text), k);
    const NoShortage pause;
    EXPECT_TRUE(status == SHARDREC_OUT_OF_MEMORY || status == SHARDREC_CANCELLED)
        << k << ": " << shardrec_last_error();
    if (status == SHARDREC_CANCELLED) ++cancelled;
    EXPECT_EQ(text, nullptr);
  });
  shardrec_control_destroy(&control);
  EXPECT_GE(cancelled, 1);
  EXPECT_GT(runs, 10);
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

TEST_P(ProbeShortage, WhatIsKeptIsReadWholeOrOutOfMemory) {
  const MemoryProfile profile = example();
  compute::store_profile(core::default_environment(), root_, profile);
  const std::string expected = compute::profile_to_json(profile);
  messages();
  int64_t short_of = 0;
  for_each_allocation([&](int64_t k) {
    char* text = nullptr;
    const shardrec_status status = ended(shardrec_probe_json(nullptr, 0, 1, nullptr, &text), k);
    const NoShortage pause;
    if (status == SHARDREC_OK) {
      EXPECT_EQ(text, expected) << k;
      shardrec_text_free(text);
      return;
    }
    ++short_of;
    EXPECT_EQ(status, SHARDREC_OUT_OF_MEMORY) << k << ": " << shardrec_last_error();
    EXPECT_EQ(text, nullptr);
  });
  EXPECT_GT(short_of, 20);
  EXPECT_EQ(messages(), 0) << "a good file was taken for a broken one";
}

TEST_P(ProbeShortage, StoringReplacesTheWholeFileOrNothing) {
  auto& environment = core::default_environment();
  const MemoryProfile before = example();
  MemoryProfile after = before;
  after.seconds = 2;
  int64_t kept = 0;
  for_each_allocation([&](int64_t k) {
    {
      const NoShortage pause;
      compute::store_profile(environment, root_, before);
    }
    bool stored = false;
    try {
      compute::store_profile(environment, root_, after);
      stored = true;
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(allocation_has_failed()) << k;
    } catch (const core::Error& error) {
      const NoShortage pause;
      ADD_FAILURE() << k << ": " << error.sentence();
    }
    const NoShortage pause;
    // Memory may run out behind the renaming, where the folder is synced.
    const auto found = compute::load_profile(environment, root_, before.machine);
    EXPECT_TRUE(found == after || (!stored && found == before)) << k;
    EXPECT_EQ(environment.list(root_).size(), 1U) << k << ": a temporary file was left";
    if (!stored) ++kept;
  });
  EXPECT_GT(kept, 20);
}

INSTANTIATE_TEST_SUITE_P(Shortages, ProbeShortage,
                         ::testing::Values(Shortage::kOnce, Shortage::kLasting));

}  // namespace
}  // namespace shardrec::test
