// The fixture of malformed calls: whatever a refused call was given, everything is as it was
// before.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <string>

#include "capi_test.h"
#include "support/structs.h"

namespace shardrec::test {

// One good object of each kind, and a place for each out-parameter that must stay as it is.
class Malformed : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, table_options.out()));
    ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, plan_options.out()));
    ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, optimizer_options.out()));
    ASSERT_OK(shardrec_model_create(nullptr, model.out()));
    ASSERT_OK(shardrec_model_add_table(model, "user", 100, 8, nullptr, nullptr));
    ASSERT_OK(shardrec_model_add_table(model, "item", 50, 4, nullptr, nullptr));
    ASSERT_OK(shardrec_model_add_feature(model, 0, "user_id", SHARDREC_POOLING_SUM));
    ASSERT_OK(shardrec_topology_create(4, 2, nullptr, topology.out()));
    ASSERT_OK(shardrec_plan_create_empty(model, topology, nullptr, plan.out()));
    ASSERT_OK(add_box(plan, 0, 1, 0, 50, 0, 8));
    ASSERT_OK(shardrec_plan_replicate(plan, 1, SHARDREC_REPLICATION_SAMPLES));
    ASSERT_OK(shardrec_control_create(nullptr, control.out()));
    ASSERT_OK(shardrec_local_create(2, 2, nullptr, group.out()));
    ASSERT_OK(shardrec_comm_create_local(group, 0, nullptr, comm.out()));
    // A call that is wrongly accepted waits for a rank that is not there.
    ASSERT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 2));
    before = state();
    ASSERT_OK(shardrec_live_objects(&live_before));
  }

  void TearDown() override {
    EXPECT_EQ(state(), before) << "a refused call changed something";
    int64_t live = 0;
    ASSERT_OK(shardrec_live_objects(&live));
    EXPECT_EQ(live, live_before) << "a refused call left a handle behind";
    EXPECT_EQ(out_comm, nullptr);
    EXPECT_EQ(out_group, nullptr);
    EXPECT_EQ(out_model, nullptr);
    EXPECT_EQ(out_plan, nullptr);
    EXPECT_EQ(out_topology, nullptr);
    EXPECT_EQ(out_text, nullptr);
    EXPECT_EQ(out32, -77);
    EXPECT_EQ(out64, -77);
    EXPECT_EQ(out_real, -77);
  }

  // All that the objects can tell of themselves.
  std::string state() {
    std::string all;
    char* text = nullptr;
    EXPECT_OK(shardrec_model_to_json(model, &text));
    all += take(text);
    EXPECT_OK(shardrec_plan_to_json(plan, &text));
    all += take(text);
    EXPECT_OK(shardrec_options_get_text(plan_options, SHARDREC_OPTION_SHARDING, &text));
    all += take(text);
    double seconds = 0;
    EXPECT_OK(shardrec_comm_get_f64(comm, SHARDREC_COMM_STEP_SECONDS, &seconds));
    EXPECT_OK(shardrec_comm_status(comm));
    return all + std::to_string(seconds);
  }

  // A handle of another kind, and a closed one.
  template <class Type, class Other>
  static Type* as(Other* other) {
    return std::bit_cast<Type*>(other);
  }
  shardrec_model* closed_model() {
    shardrec_model* fresh = nullptr;
    EXPECT_OK(shardrec_model_create(nullptr, &fresh));
    shardrec_model* copy = fresh;
    shardrec_model_destroy(&copy);
    return fresh;
  }

  Options table_options, plan_options, optimizer_options;
  Model model;
  Topology topology;
  Plan plan;
  Control control;
  Local group;
  Comm comm;
  std::string before;
  int64_t live_before = 0;

  shardrec_comm* out_comm = nullptr;
  shardrec_local* out_group = nullptr;
  shardrec_model* out_model = nullptr;
  shardrec_plan* out_plan = nullptr;
  shardrec_topology* out_topology = nullptr;
  char* out_text = nullptr;
  int32_t out32 = -77;
  int64_t out64 = -77;
  double out_real = -77;
};

}  // namespace shardrec::test
