// Options of tables that limit plans, through the C API: set, read back, in JSON, compared between
// ranks, and honoured by plans.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capi_test.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

Options table_options(const std::vector<std::pair<shardrec_option, const char*>>& values) {
  Options options;
  EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, options.out()));
  for (const auto& [key, value] : values) EXPECT_OK(shardrec_options_set_text(options, key, value));
  return options;
}

std::string text_of(shardrec_options* options, shardrec_option key) {
  char* text = nullptr;
  EXPECT_OK(shardrec_options_get_text(options, key, &text));
  return take(text);
}

Model model_with(const Options& options) {
  Model model;
  EXPECT_OK(shardrec_model_create(nullptr, model.out()));
  EXPECT_OK(shardrec_model_add_table(model, "user", 943, 64, options, nullptr));
  return model;
}

shardrec_status plan_of(const Model& model, int ranks, const char* sharding, Plan& plan) {
  Topology topology;
  EXPECT_OK(shardrec_topology_create(ranks, ranks, nullptr, topology.out()));
  Options options;
  EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, options.out()));
  EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_SHARDING, sharding));
  return shardrec_plan_create(model, topology, options, plan.out());
}

TEST(TableLimits, AreNumbersAndTexts) {
  const Options options = table_options({});
  EXPECT_EQ(text_of(options, SHARDREC_OPTION_ALLOWED_SHARDING), "all");
  EXPECT_EQ(text_of(options, SHARDREC_OPTION_ALLOWED_RANKS), "");
  EXPECT_EQ(text_of(options, SHARDREC_OPTION_MIN_COLUMNS), "1");
  EXPECT_OK(
      shardrec_options_set_i64(options, SHARDREC_OPTION_ALLOWED_SHARDING,
                               1 << SHARDREC_SHARDING_ROW_WISE | 1 << SHARDREC_SHARDING_GRID));
  EXPECT_EQ(text_of(options, SHARDREC_OPTION_ALLOWED_SHARDING), "row_wise, grid");
  EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_ALLOWED_SHARDING, "table_wise"));
  int64_t mask = -1;
  EXPECT_OK(shardrec_options_get_i64(options, SHARDREC_OPTION_ALLOWED_SHARDING, &mask));
  EXPECT_EQ(mask, 1 << SHARDREC_SHARDING_TABLE_WISE);
  expect_refused({
      {"AUTO",
       [&] { return shardrec_options_set_i64(options, SHARDREC_OPTION_ALLOWED_SHARDING, 1); },
       SHARDREC_INVALID_ARGUMENT, "table_wise, row_wise"},
      {"MIXED",
       [&] {
         return shardrec_options_set_text(options, SHARDREC_OPTION_ALLOWED_SHARDING, "mixed");
       },
       SHARDREC_INVALID_ARGUMENT, "\"mixed\""},
      {"ranks",
       [&] { return shardrec_options_set_text(options, SHARDREC_OPTION_ALLOWED_RANKS, "3-1"); },
       SHARDREC_INVALID_ARGUMENT, "0-3, 7"},
      {"columns", [&] { return shardrec_options_set_i64(options, SHARDREC_OPTION_MIN_COLUMNS, 0); },
       SHARDREC_INVALID_ARGUMENT, "[1, 65536]"},
  });
  EXPECT_OK(shardrec_options_get_i64(options, SHARDREC_OPTION_ALLOWED_SHARDING, &mask));
  EXPECT_EQ(mask, 1 << SHARDREC_SHARDING_TABLE_WISE);
}

TEST(TableLimits, ArePartOfTheModelAndHonouredByPlans) {
  const Model model =
      model_with(table_options({{SHARDREC_OPTION_ALLOWED_SHARDING, "column_wise, table_wise"},
                                {SHARDREC_OPTION_ALLOWED_RANKS, "1, 3-9"},
                                {SHARDREC_OPTION_MIN_COLUMNS, "32"}}));
  char* text = nullptr;
  ASSERT_OK(shardrec_model_to_json(model, &text));
  const std::string json = take(text);
  EXPECT_TRUE(contains(json, R"("allowed_sharding": ["table_wise", "column_wise"], )"
                             R"("allowed_ranks": "1, 3-9", "min_columns": 32)"))
      << json;
  Model copy;
  ASSERT_OK(shardrec_model_from_json(json.c_str(), copy.out()));
  Plan plan;
  ASSERT_OK(plan_of(copy, 6, "column_wise", plan));
  std::vector<int> ranks;
  for (int32_t box = 0; box < 2; ++box) {
    shardrec_box out{};
    EXPECT_OK(read_box(plan, 0, box, &out));
    EXPECT_EQ(out.cols, 32);
    ranks.push_back(out.rank);
  }
  EXPECT_EQ(ranks, (std::vector<int>{1, 3}));
  EXPECT_EQ(plan_of(copy, 6, "row_wise", plan), SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "table \"user\" allows table_wise, column_wise"))
      << shardrec_last_error();
  ASSERT_OK(shardrec_last_error_text(SHARDREC_ERROR_TABLE, &text));
  EXPECT_EQ(take(text), "user");
  EXPECT_EQ(plan_of(copy, 1, "auto", plan), SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "ALLOWED_RANKS")) << shardrec_last_error();
}

TEST(TableLimits, ThatDifferBetweenRanksAreADisagreementByName) {
  const std::vector<std::pair<shardrec_option, std::pair<const char*, const char*>>> cases = {
      {SHARDREC_OPTION_ALLOWED_SHARDING,
       {"grid", "allowed_sharding of table \"user\" is \"grid\" on rank 1 and \"all\" on rank 0"}},
      {SHARDREC_OPTION_ALLOWED_RANKS,
       {"0-7", "allowed_ranks of table \"user\" is \"0-7\" on rank 1 and \"\" on rank 0"}},
      {SHARDREC_OPTION_MIN_COLUMNS,
       {"2", "min_columns of table \"user\" is 2 on rank 1 and 1 on rank 0"}},
      {SHARDREC_OPTION_OUT_OF_RANGE,
       {"drop", "out_of_range of table \"user\" is drop on rank 1 and error on rank 0"}},
  };
  for (const auto& [key, value] : cases) {
    run_ranks(2, [&](shardrec_comm* comm, int rank) {
      Options options = table_options({});
      if (rank == 1) {
        EXPECT_OK(shardrec_options_set_text(options, key, value.first));
      }
      const Model model = model_with(options);
      shardrec_plan* plan = nullptr;
      EXPECT_EQ(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan),
                SHARDREC_DISAGREEMENT);
      EXPECT_TRUE(contains(shardrec_last_error(), value.second)) << shardrec_last_error();
      EXPECT_OK(shardrec_comm_close(comm));
    });
  }
}

TEST(TableLimits, ContradictionsAreEveryRanksError) {
  run_ranks(2, [&](shardrec_comm* comm, int) {
    const Model model = model_with(table_options({{SHARDREC_OPTION_ALLOWED_RANKS, "5"}}));
    shardrec_plan* plan = nullptr;
    EXPECT_EQ(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "\"user\" is allowed on ranks 5 only"))
        << shardrec_last_error();
    EXPECT_EQ(plan, nullptr);
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

}  // namespace
}  // namespace shardrec::test
