#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "plan/plan.h"
#include "plan/plan_test_util.h"

namespace shardrec::plan {
namespace {

TEST(PlanText, ListsTablesKindsRanksAndBytesOfEachRank) {
  Model model = tables_of({{1024, 64}, {5, 8}});
  set_optimizer(model, {.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD});
  add_table(model, {.name = "\xe8\xa1\xa8", .rows = 2, .dim = 4});
  Plan plan = make_plan(model, {2, 2}, SHARDREC_SHARDING_ROW_WISE);
  plan.tables[1] = {true, {}};
  plan.tables[2].boxes = {{1, {0, 1, 0, 4}}, {0, {1, 1, 0, 4}}};
  EXPECT_EQ(
      plan_to_text(plan, model),
      "table  rows  dim    weights   states      total  sharding       boxes  ranks\n"
      "t0     1024   64  256.0 KiB  4.0 KiB  260.0 KiB  row_wise           2  0-1\n"
      "t1        5    8      320 B     40 B      360 B  data_parallel      0  all\n"
      "\xe8\xa1\xa8         2    4       32 B      8 B       40 B  boxes              2  0-1\n"
      "3 tables, 256.3 KiB of weights, 4.0 KiB of optimizer states, on 2 ranks, 2 per node\n"
      "\n"
      "rank    weights   states      total\n"
      "   0  128.2 KiB  2.0 KiB  130.2 KiB\n"
      "   1  128.2 KiB  2.0 KiB  130.2 KiB\n"
      "largest rank: 130.2 KiB, 1.00 x the mean; of each rank, 180 B are of replicated "
      "tables\n");
}

TEST(PlanText, StaysShortForThousandsOfTablesAndRanks) {
  Model model;
  for (int i = 0; i < 5000; ++i) {
    model.tables.push_back(
        {.name = std::string(200, 'x') + std::to_string(i), .rows = 7, .dim = 4});
  }
  const std::string text =
      plan_to_text(make_plan(model, {1000, 8}, SHARDREC_SHARDING_MIXED), model);
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_LT(text.size(), 20000U);
  EXPECT_NE(text.find("... and 4960 more tables\n5000 tables, "), std::string::npos) << text;
  EXPECT_NE(text.find("... and 960 more ranks\n"), std::string::npos);
}

TEST(PlanText, TellsHowUnevenTheRanksAre) {
  const Model model = tables_of({{1024, 1}, {3072, 1}});
  const std::string text =
      plan_to_text(make_plan(model, {2, 1}, SHARDREC_SHARDING_TABLE_WISE), model);
  EXPECT_NE(text.find("largest rank: 12.0 KiB, 1.50 x the mean\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace shardrec::plan
