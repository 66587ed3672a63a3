// "Is there a ...?": what the library says it has is what shardrec_capabilities_json lists, and what it has not it
// says with a reason.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "capi_test.h"
#include "shardrec/shardrec.hpp"

namespace shardrec::test {
namespace {

TEST(Available, IsWhatTheCapabilitiesList) {
  const auto json = nlohmann::json::parse(capabilities_json());
  const std::pair<const char*, shardrec_capability> lists[] = {
      {"engines", SHARDREC_CAPABILITY_ENGINE},
      {"devices", SHARDREC_CAPABILITY_DEVICE},
      {"cpu_targets", SHARDREC_CAPABILITY_CPU_TARGET}};
  for (const auto& [list, kind] : lists) {
    ASSERT_FALSE(json.at(list).empty());
    for (const std::string name : json.at(list)) {
      const Availability found = available(kind, name);
      EXPECT_TRUE(found) << name << ": " << found.reason;
      EXPECT_EQ(found.reason, "");
    }
  }
  EXPECT_EQ(available(SHARDREC_CAPABILITY_DENSE, "openblas").is_available,
            !json.at("dense").is_null());
  EXPECT_EQ(available(SHARDREC_CAPABILITY_DENSE, "cublas").is_available,
            !json.at("dense_cuda").is_null());
  for (const auto& device : json.at("cuda_devices")) {
    const std::string name = "cuda:" + std::to_string(device.at("index").get<int>());
    EXPECT_TRUE(available(SHARDREC_CAPABILITY_DEVICE, name)) << name;
  }
}

TEST(Capabilities, CountTheProcessorsThatTheProcessMayUse) {
  const auto processors = [] {
    return nlohmann::json::parse(capabilities_json()).at("processors").get<int>();
  };
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_GE(processors(), 1);
  EXPECT_LE(processors(), CPU_COUNT(&allowed));  // fewer where a cgroup has a quota
  size_t one = 0;
  while (!CPU_ISSET(one, &allowed)) ++one;
  cpu_set_t narrow;
  CPU_ZERO(&narrow);
  CPU_SET(one, &narrow);
  ASSERT_EQ(sched_setaffinity(0, sizeof(narrow), &narrow), 0);
  const int found = processors();
  ASSERT_EQ(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
  EXPECT_EQ(found, 1);
}

TEST(Available, SaysWhyNot) {
  const auto why_not = [](shardrec_capability kind, const char* name) {
    const Availability found = available(kind, name);
    EXPECT_FALSE(found) << name;
    return found.reason;
  };
  EXPECT_EQ(why_not(SHARDREC_CAPABILITY_ENGINE, "ucx"),
            "there is no engine \"ucx\"; there are local, gloo, mpi, nccl");
  EXPECT_TRUE(contains(why_not(SHARDREC_CAPABILITY_ENGINE, ""), "there is no engine \"\""));
  for (const char* name : {"tpu", "cuda:", "cuda:-1", "cuda:1024", "cuda:1x", "CPU", ""}) {
    EXPECT_TRUE(contains(why_not(SHARDREC_CAPABILITY_DEVICE, name),
                         "there is no device \"" + std::string(name) + "\"; names are \"cpu\", "))
        << name;
  }
  EXPECT_NE(why_not(SHARDREC_CAPABILITY_DEVICE, "cuda:1023"), "");
  EXPECT_TRUE(contains(why_not(SHARDREC_CAPABILITY_CPU_TARGET, "avx99"), "there are scalar"));
  EXPECT_TRUE(
      contains(why_not(SHARDREC_CAPABILITY_DENSE, "mkl"), "there are \"openblas\" and \"cublas\""));
}

// A process that finds no plug-in: each says what to install.
TEST(Available, NamesThePackageOfAPluginThatIsNotInstalled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("SHARDREC_PLUGIN_PATH", "/nonexistent", 1);
        const Availability gloo = available(SHARDREC_CAPABILITY_ENGINE, "gloo");
        EXPECT_FALSE(gloo);
        EXPECT_TRUE(contains(gloo.reason, "libshardrec's Gloo plug-in")) << gloo.reason;
        EXPECT_TRUE(available(SHARDREC_CAPABILITY_ENGINE, "local"));
        const Availability dense = available(SHARDREC_CAPABILITY_DENSE, "openblas");
        EXPECT_FALSE(dense);
        EXPECT_TRUE(contains(dense.reason, "OpenBLAS plug-in")) << dense.reason;
        const Availability cuda = available(SHARDREC_CAPABILITY_DEVICE, "cuda");
        EXPECT_FALSE(cuda);
        EXPECT_TRUE(contains(cuda.reason, "CUDA plug-in")) << cuda.reason;
        std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(Available, RefusesWhatIsNoQuestion) {
  int32_t is = -7;
  char* reason = nullptr;
  EXPECT_EQ(shardrec_available(SHARDREC_CAPABILITY_ENGINE, nullptr, &is, &reason),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_available(SHARDREC_CAPABILITY_ENGINE, "local", nullptr, &reason),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_available(static_cast<shardrec_capability>(4), "local", &is, &reason),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "kind is 4")) << shardrec_last_error();
  EXPECT_EQ(is, -7);
  EXPECT_EQ(reason, nullptr);
  ASSERT_OK(shardrec_available(SHARDREC_CAPABILITY_ENGINE, "none", &is, nullptr));
  EXPECT_EQ(is, 0);
}

}  // namespace
}  // namespace shardrec::test
