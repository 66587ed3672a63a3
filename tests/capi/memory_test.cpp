// When memory is short: calls return OUT_OF_MEMORY and leave nothing behind, and a status stands
// even when its sentence finds no room. Replaces operator new of the whole program; sanitizers have
// their own, hence these tests skip under them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>

#include "capi_test.h"
#include "guard.h"
#include "handle.h"
#include "last_error.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SHARDREC_SANITIZER_OWNS_NEW
#endif
#endif

namespace {

// Allocations of this thread that still succeed; negative: all.
thread_local int64_t allocations_left = -1;

[[maybe_unused]] void* allocate(size_t size) {
  if (allocations_left == 0) throw std::bad_alloc();
  if (allocations_left > 0) --allocations_left;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

#ifndef SHARDREC_SANITIZER_OWNS_NEW
void* operator new(size_t size) { return allocate(size); }
void* operator new[](size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace shardrec::capi {
namespace {

class LackOfMemory : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef SHARDREC_SANITIZER_OWNS_NEW
    GTEST_SKIP() << "the sanitizer of this build owns operator new";
#endif
  }
};

TEST_F(LackOfMemory, AStatusStandsWithoutItsSentence) {
  const core::Error error(SHARDREC_PEER_FAILED, std::string(1000, 'x'), {.rank = 1});
  allocations_left = 0;
  const shardrec_status status = record_error(error);
  allocations_left = -1;
  EXPECT_EQ(status, SHARDREC_PEER_FAILED);
  EXPECT_EQ(shardrec_last_error_status(), SHARDREC_PEER_FAILED);
  EXPECT_STREQ(shardrec_last_error(),
               "the call failed, and there is no memory left to tell more than its status");
  int64_t rank = 0;
  EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &rank), SHARDREC_NOT_FOUND);
}

// Runs a call again and again with more allocations granted each time, until it succeeds: before that it must be
// OUT_OF_MEMORY, and leave no object behind. Each of the first few hundred allocations fails once. Behind them the
// grant grows by a share, because what asks for the cgroups of this process makes some allocations for each mount
// of the machine: there may be any number of them.
template <class Call>
void expect_survives_lack_of_memory(const char* what, const Call& call) {
  SCOPED_TRACE(what);
  constexpr int64_t kOneByOne = 300;
  constexpr int64_t kMostAllocations = int64_t{1} << 40;  // no memory has room for them
  const int64_t before = live_objects();
  for (int64_t granted = 0; granted < kMostAllocations; granted += 1 + granted / kOneByOne) {
    allocations_left = granted;
    const shardrec_status status = call();
    allocations_left = -1;
    if (status == SHARDREC_OK) {
      EXPECT_GT(granted, 0) << "the call never allocated: it tests nothing";
      return;
    }
    ASSERT_EQ(status, SHARDREC_OUT_OF_MEMORY) << shardrec_last_error();
    ASSERT_EQ(live_objects(), before);
  }
  FAIL() << "the call did not succeed with " << kMostAllocations << " allocations";
}

TEST_F(LackOfMemory, CallsReturnOutOfMemoryAndLeaveNothingBehind) {
  test::Options options;
  expect_survives_lack_of_memory("options_create", [&] {
    return shardrec_options_create(SHARDREC_OPTIONS_PLAN, options.out());
  });
  expect_survives_lack_of_memory("options_set_i64", [&] {
    return shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, SHARDREC_SHARDING_ROW_WISE);
  });
  test::Model model;
  expect_survives_lack_of_memory("model_create",
                                 [&] { return shardrec_model_create(nullptr, model.out()); });
  expect_survives_lack_of_memory("model_add_table", [&] {
    return shardrec_model_add_table(model, "a table with a long name", 100, 16, nullptr, nullptr);
  });
  expect_survives_lack_of_memory("model_add_feature", [&] {
    return shardrec_model_add_feature(model, 0, "a feature with a long name", SHARDREC_POOLING_SUM);
  });
  char* json = nullptr;
  expect_survives_lack_of_memory("model_to_json",
                                 [&] { return shardrec_model_to_json(model, &json); });
  test::Model copy;
  expect_survives_lack_of_memory("model_from_json",
                                 [&] { return shardrec_model_from_json(json, copy.out()); });
  shardrec_text_free(json);
  test::Topology topology;
  expect_survives_lack_of_memory(
      "topology_create", [&] { return shardrec_topology_create(4, 2, nullptr, topology.out()); });
  test::Plan plan;
  expect_survives_lack_of_memory(
      "plan_create", [&] { return shardrec_plan_create(model, topology, options, plan.out()); });
  char* text = nullptr;
  expect_survives_lack_of_memory("plan_to_text",
                                 [&] { return shardrec_plan_to_text(plan, &text); });
  shardrec_text_free(text);
  test::Control control;
  expect_survives_lack_of_memory("control_create",
                                 [&] { return shardrec_control_create(nullptr, control.out()); });
  test::Local group;
  expect_survives_lack_of_memory("local_create",
                                 [&] { return shardrec_local_create(2, 2, nullptr, group.out()); });
  char* capabilities = nullptr;
  expect_survives_lack_of_memory("capabilities",
                                 [&] { return shardrec_capabilities_json(&capabilities); });
  shardrec_text_free(capabilities);
}

}  // namespace
}  // namespace shardrec::capi
