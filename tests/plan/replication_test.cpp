// How replicated tables keep in step: chosen by bytes, kept in the plan.
#include "planner/replication.h"

#include <gtest/gtest.h>

#include "plan/plan_test_util.h"
#include "support/plan_boxes.h"

namespace shardrec::plan {
namespace {

Model one_feature(int64_t rows, int64_t dim) {
  Model model = tables_of({{rows, dim}});
  add_feature(model, {.name = "f", .table = 0});
  return model;
}

shardrec_replication chosen(const Model& model, PlanOptions options, int32_t ranks = 4) {
  options.sharding = SHARDREC_SHARDING_DATA_PARALLEL;
  return make_plan(model, {ranks, ranks}, options).tables[0].replication;
}

TEST(Replication, AnUnknownBatchIsExchangedBySamples) {
  EXPECT_EQ(chosen(one_feature(100, 8), {}), SHARDREC_REPLICATION_SAMPLES);
}

TEST(Replication, AutoSendsTheLeast) {
  for (const int64_t rows : {1, 10, 1000, 100000, 10000000}) {
    for (const int64_t batch : {1, 64, 4096}) {
      for (const double length : {0.5, 1.0, 40.0}) {
        for (const int32_t ranks : {2, 4, 64}) {
          const Model model = one_feature(rows, 16);
          const PlanOptions options{.batch_size = batch, .bag_length = length};
          const auto best = chosen(model, options, ranks);
          for (const auto other : {SHARDREC_REPLICATION_SAMPLES, SHARDREC_REPLICATION_ROWS,
                                   SHARDREC_REPLICATION_DENSE}) {
            EXPECT_LE(planner::replication_bytes(model, 0, ranks, best, options),
                      planner::replication_bytes(model, 0, ranks, other, options))
                << rows << " " << batch << " " << length << " " << ranks << " " << other;
          }
        }
      }
    }
  }
  EXPECT_EQ(chosen(one_feature(10, 16), {.batch_size = 4096, .bag_length = 1}),
            SHARDREC_REPLICATION_DENSE);
  EXPECT_EQ(chosen(one_feature(10000000, 16), {.batch_size = 8, .bag_length = 1}, 64),
            SHARDREC_REPLICATION_ROWS);
  EXPECT_EQ(chosen(one_feature(100000, 16), {.batch_size = 8, .bag_length = 50}, 2),
            SHARDREC_REPLICATION_SAMPLES);
}

TEST(Replication, SlotsThatAreTooLargeAreNotChosen) {
  const PlanOptions options{.batch_size = 8, .bag_length = 1};
  constexpr int64_t kMost = int64_t{64} << 32;
  EXPECT_EQ(chosen(one_feature(kMost, 16), options, 64), SHARDREC_REPLICATION_ROWS);
  EXPECT_EQ(chosen(one_feature(kMost + 1, 16), options, 64), SHARDREC_REPLICATION_SAMPLES);
}

TEST(Replication, AnExplicitChoiceIsTaken) {
  for (const auto choice :
       {SHARDREC_REPLICATION_SAMPLES, SHARDREC_REPLICATION_ROWS, SHARDREC_REPLICATION_DENSE}) {
    EXPECT_EQ(chosen(one_feature(10, 16), {.replication = choice, .batch_size = 100}), choice);
  }
}

TEST(Replication, SurvivesJsonAndIsRefusedWhereThereAreBoxes) {
  const Model model = one_feature(10, 16);
  Plan plan = make_plan(model, {2, 1}, SHARDREC_SHARDING_DATA_PARALLEL);
  replicate(plan, model, 0, SHARDREC_REPLICATION_ROWS);
  EXPECT_EQ(plan_from_json(model, plan_to_json(plan, model)), plan);
  EXPECT_NE(plan_to_text(plan, model).find("all, by rows"), std::string::npos);
  EXPECT_EQ(status_of([&] { replicate(plan, model, 0, SHARDREC_REPLICATION_AUTO); }),
            SHARDREC_INVALID_ARGUMENT);
  Plan cut = make_plan(model, {2, 1}, SHARDREC_SHARDING_ROW_WISE);
  EXPECT_EQ(status_of([&] { replicate(cut, model, 0, SHARDREC_REPLICATION_ROWS); }),
            SHARDREC_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shardrec::plan
