// shardrec_plan_collective: every rank gets rank 0's plan, or every rank the same error.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "capi_test.h"

namespace shardrec::test {
namespace {

Options options_of(shardrec_options_kind kind, shardrec_option key, const char* value) {
  Options options;
  EXPECT_OK(shardrec_options_create(kind, options.out()));
  EXPECT_OK(shardrec_options_set_text(options, key, value));
  return options;
}

Model two_tables() {
  Model model;
  EXPECT_OK(shardrec_model_create(nullptr, model.out()));
  EXPECT_OK(shardrec_model_add_table(model, "user", 943, 64, nullptr, nullptr));
  EXPECT_OK(shardrec_model_add_table(model, "item", 1682, 64, nullptr, nullptr));
  EXPECT_OK(shardrec_model_add_feature(model, 0, "user_id", SHARDREC_POOLING_SUM));
  EXPECT_OK(shardrec_model_add_feature(model, 1, "item_id", SHARDREC_POOLING_MEAN));
  return model;
}

std::string json_of(shardrec_plan* plan) {
  char* text = nullptr;
  EXPECT_OK(shardrec_plan_to_json(plan, &text));
  return take(text);
}

TEST(PlanCollective, EveryRankGetsThePlanThatPlanCreateMakes) {
  constexpr size_t kRanks = 4;
  for (const char* sharding : {"auto", "row_wise", "grid", "mixed"}) {
    SCOPED_TRACE(sharding);
    std::array<std::string, kRanks> plans;
    run_ranks(
        kRanks,
        [&](shardrec_comm* comm, int rank) {
          const Model model = two_tables();
          const Options options =
              options_of(SHARDREC_OPTIONS_PLAN, SHARDREC_OPTION_SHARDING, sharding);
          Plan plan;
          EXPECT_OK(shardrec_plan_collective(comm, nullptr, model, options, plan.out()));
          EXPECT_OK(shardrec_plan_check(plan));
          plans[static_cast<size_t>(rank)] = json_of(plan);
          EXPECT_OK(shardrec_comm_close(comm));
        },
        2);
    const Model model = two_tables();
    const Options options = options_of(SHARDREC_OPTIONS_PLAN, SHARDREC_OPTION_SHARDING, sharding);
    Topology topology;
    ASSERT_OK(shardrec_topology_create(kRanks, 2, nullptr, topology.out()));
    Plan expected;
    ASSERT_OK(shardrec_plan_create(model, topology, options, expected.out()));
    for (const std::string& plan : plans) EXPECT_EQ(plan, json_of(expected));
  }
}

// A change that rank 2 makes to the model, and how the sentence names it.
struct Difference {
  const char* what;
  std::function<void(shardrec_model*)> change;
  const char* named;
  const char* table;  // part of the error; null: none
};

const std::vector<Difference>& differences() {
  static const std::vector<Difference> all = {
      {"one more table",
       [](shardrec_model* model) {
         EXPECT_OK(shardrec_model_add_table(model, "genre", 19, 8, nullptr, nullptr));
       },
       "genre", "genre"},
      {"one more feature",
       [](shardrec_model* model) {
         EXPECT_OK(shardrec_model_add_feature(model, 0, "again", SHARDREC_POOLING_SUM));
       },
       "the number of features is 3 on rank 2 and 2 on rank 0", nullptr},
      {"another optimizer",
       [](shardrec_model* model) {
         const Options options =
             options_of(SHARDREC_OPTIONS_OPTIMIZER, SHARDREC_OPTION_OPTIMIZER, "rowwise_adagrad");
         EXPECT_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
       },
       "the optimizer is rowwise_adagrad on rank 2 and sgd on rank 0", nullptr},
      {"another learning rate",
       [](shardrec_model* model) {
         const Options options =
             options_of(SHARDREC_OPTIONS_OPTIMIZER, SHARDREC_OPTION_LEARNING_RATE, "0.5");
         EXPECT_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
       },
       "the learning rate is 0.5 on rank 2 and 0.01 on rank 0", nullptr},
      {"another optimizer of one table",
       [](shardrec_model* model) {
         const Options options =
             options_of(SHARDREC_OPTIONS_OPTIMIZER, SHARDREC_OPTION_MOMENTUM, "0.5");
         EXPECT_OK(shardrec_model_set_optimizer(model, 1, options));
       },
       "the momentum of table \"item\" is 0.5 on rank 2 and 0.9 on rank 0", "item"},
  };
  return all;
}

TEST(PlanCollective, ModelsThatDifferAreADisagreementNamingRankAndDifference) {
  for (const Difference& difference : differences()) {
    SCOPED_TRACE(difference.what);
    run_ranks(4, [&](shardrec_comm* comm, int rank) {
      const Model model = two_tables();
      if (rank == 2) difference.change(model);
      shardrec_plan* plan = nullptr;
      EXPECT_EQ(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan),
                SHARDREC_DISAGREEMENT);
      EXPECT_EQ(plan, nullptr);
      EXPECT_TRUE(contains(shardrec_last_error(), difference.named)) << shardrec_last_error();
      int64_t at_fault = -1;
      EXPECT_OK(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &at_fault));
      EXPECT_EQ(at_fault, 2);
      char* table = nullptr;
      const shardrec_status named = shardrec_last_error_text(SHARDREC_ERROR_TABLE, &table);
      EXPECT_EQ(named, difference.table == nullptr ? SHARDREC_NOT_FOUND : SHARDREC_OK);
      EXPECT_EQ(take(table), difference.table == nullptr ? "" : difference.table);
      // The communicator lives: with the right model it works.
      const Model right = two_tables();
      EXPECT_OK(shardrec_plan_collective(comm, nullptr, right, nullptr, &plan));
      shardrec_plan_destroy(&plan);
      EXPECT_OK(shardrec_comm_close(comm));
    });
  }
}

TEST(PlanCollective, TheFirstTableThatDiffersIsNamed) {
  run_ranks(3, [](shardrec_comm* comm, int rank) {
    Model model;
    EXPECT_OK(shardrec_model_create(nullptr, model.out()));
    EXPECT_OK(shardrec_model_add_table(model, "a", 10, 4, nullptr, nullptr));
    EXPECT_OK(shardrec_model_add_table(model, "b", rank == 1 ? 21 : 20, 4, nullptr, nullptr));
    EXPECT_OK(shardrec_model_add_table(model, "c", 30, rank == 2 ? 8 : 4, nullptr, nullptr));
    shardrec_plan* plan = nullptr;
    EXPECT_EQ(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan),
              SHARDREC_DISAGREEMENT);
    EXPECT_STREQ(shardrec_last_error(),
                 "rank 1 and rank 0 bring different models: the number of rows of table \"b\" is "
                 "21 on rank 1 and "
                 "20 on rank 0; the same model is needed on every rank");
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(PlanCollective, OptionsThatDifferAreADisagreement) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    const Model model = two_tables();
    const Options options = options_of(SHARDREC_OPTIONS_PLAN, SHARDREC_OPTION_SHARDING,
                                       rank == 0 ? "row_wise" : "column_wise");
    shardrec_plan* plan = nullptr;
    EXPECT_EQ(shardrec_plan_collective(comm, nullptr, model, options, &plan),
              SHARDREC_DISAGREEMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "column_wise on rank 1")) << shardrec_last_error();
    const Options balance =
        options_of(SHARDREC_OPTIONS_PLAN, SHARDREC_OPTION_BALANCE, rank == 0 ? "bytes" : "time");
    EXPECT_EQ(shardrec_plan_collective(comm, nullptr, model, balance, &plan),
              SHARDREC_DISAGREEMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "SHARDREC_OPTION_BALANCE is time on rank 1"))
        << shardrec_last_error();
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(PlanCollective, WhatOneRankGetsWrongEveryRankIsTold) {
  run_ranks(3, [](shardrec_comm* comm, int rank) {
    const Model model = two_tables();
    const Options wrong = options_of(SHARDREC_OPTIONS_TABLE, SHARDREC_OPTION_INIT, "zeros");
    shardrec_plan* plan = nullptr;
    EXPECT_EQ(
        shardrec_plan_collective(comm, nullptr, rank == 1 ? nullptr : model.get(), nullptr, &plan),
        SHARDREC_INVALID_HANDLE);
    EXPECT_TRUE(contains(shardrec_last_error(), "rank 1")) << shardrec_last_error();
    EXPECT_EQ(
        shardrec_plan_collective(comm, nullptr, model, rank == 2 ? wrong.get() : nullptr, &plan),
        SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "kind TABLE")) << shardrec_last_error();
    EXPECT_EQ(shardrec_plan_collective(comm, nullptr, model, nullptr, rank == 0 ? nullptr : &plan),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "out is NULL")) << shardrec_last_error();
    EXPECT_EQ(plan, nullptr);
    EXPECT_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan));
    shardrec_plan_destroy(&plan);
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

}  // namespace
}  // namespace shardrec::test
