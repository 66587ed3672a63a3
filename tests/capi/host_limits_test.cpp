// What the host denies or asks for wrongly is told as such: threads, SHARDREC_* variables.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "capi/capi_test.h"
#include "support/no_threads.h"

namespace shardrec::test {
namespace {

// In processes of their own: limits and what is read once would stay.
class HostLimitsDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  void TearDown() override {
    unsetenv("SHARDREC_CPU_TARGET");
    unsetenv("SHARDREC_ALLOW_PLAIN_TCP");
  }
};

bool is(shardrec_status status, shardrec_status expected, const char* part) {
  if (status == expected && contains(shardrec_last_error(), part)) return true;
  std::fprintf(stderr, "status %d, \"%s\"\n", static_cast<int>(status), shardrec_last_error());
  return false;
}

int make_without_threads() {
  if (!may_start_no_thread()) return 2;
  const auto refused = [](shardrec_status status) {
    return is(status, SHARDREC_OUT_OF_MEMORY, "RLIMIT_NPROC is 1");
  };
  Options options;
  if (shardrec_options_create(SHARDREC_OPTIONS_MLP, options.out()) != SHARDREC_OK ||
      shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 4) != SHARDREC_OK) {
    return 3;
  }
  Owned<shardrec_interaction, shardrec_interaction_destroy> layer;
  if (!refused(shardrec_interaction_create(2, 8, options, layer.out()))) return 4;
  Owned<shardrec_rendezvous, shardrec_rendezvous_destroy> meeting;
  if (!refused(shardrec_rendezvous_create(nullptr, meeting.out()))) return 5;
  // One thread is there.
  if (shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 1) != SHARDREC_OK) return 6;
  return shardrec_interaction_create(2, 8, options, layer.out()) == SHARDREC_OK ? 0 : 7;
}

TEST_F(HostLimitsDeathTest, AThreadThatTheSystemDeniesIsOutOfMemoryWithTheLimit) {
  EXPECT_EXIT(_exit(make_without_threads()), testing::ExitedWithCode(0), "");
}

int use_kernels() {
  const auto refused = [](shardrec_status status) {
    return is(status, SHARDREC_INVALID_ARGUMENT, "SHARDREC_CPU_TARGET is \"sse9\"") &&
           contains(shardrec_last_error(), "scalar");
  };
  char* text = nullptr;
  if (!refused(shardrec_capabilities_json(&text))) return 2;
  if (!refused(shardrec_probe_json(nullptr, 0, 1, nullptr, &text))) return 3;
  if (!refused(shardrec_probe_json(nullptr, 1, 0, nullptr, &text))) return 4;
  Owned<shardrec_interaction, shardrec_interaction_destroy> layer;
  if (!refused(shardrec_interaction_create(2, 8, nullptr, layer.out()))) return 5;
  Owned<shardrec_mlp, shardrec_mlp_destroy> mlp;
  if (!refused(shardrec_mlp_create(4, nullptr, mlp.out()))) return 6;
  int wrong = 0;
  run_ranks(1, [&](shardrec_comm* comm, int) {
    Model model;
    Plan plan;
    Owned<shardrec_collection, shardrec_collection_destroy> collection;
    int32_t table = 0;
    if (shardrec_model_create(nullptr, model.out()) != SHARDREC_OK ||
        shardrec_model_add_table(model, "t", 10, 4, nullptr, &table) != SHARDREC_OK ||
        shardrec_plan_collective(comm, nullptr, model, nullptr, plan.out()) != SHARDREC_OK) {
      wrong = 7;
    } else if (!refused(shardrec_collection_create(comm, nullptr, model, plan, nullptr,
                                                   collection.out()))) {
      wrong = 8;
    }
  });
  return wrong;
}

TEST_F(HostLimitsDeathTest, AnUnknownCpuTargetIsRefusedByAllThatNeedsKernels) {
  setenv("SHARDREC_CPU_TARGET", "sse9", 1);
  EXPECT_EXIT(_exit(use_kernels()), testing::ExitedWithCode(0), "");
}

TEST_F(HostLimitsDeathTest, APermissionThatIsNeitherYesNorNoIsRefused) {
  setenv("SHARDREC_ALLOW_PLAIN_TCP", "yes", 1);
  Comm comm;
  const shardrec_status status = shardrec_comm_create_from_env(nullptr, comm.out());
  if (status == SHARDREC_UNSUPPORTED) GTEST_SKIP() << shardrec_last_error();
  EXPECT_TRUE(is(status, SHARDREC_INVALID_ARGUMENT, "SHARDREC_ALLOW_PLAIN_TCP is \"yes\""));
}

}  // namespace
}  // namespace shardrec::test
