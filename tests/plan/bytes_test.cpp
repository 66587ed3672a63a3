// What a plan says of the memory of its ranks.
#include "plan/bytes.h"

#include <gtest/gtest.h>

#include "plan/plan_test_util.h"
#include "support/plan_boxes.h"

namespace shardrec::plan {
namespace {

Model one_table(shardrec_optimizer optimizer, shardrec_row_statistics statistics,
                shardrec_dtype dtype = SHARDREC_FLOAT32) {
  Model model;
  add_table(model, {.name = "t", .rows = 10, .dim = 8, .dtype = dtype});
  set_optimizer(model, {.kind = optimizer, .row_statistics = statistics});
  return model;
}

Plan cut(const std::vector<Box>& boxes, const Model& model) {
  Plan plan{{2, 2}, std::vector<TablePlan>(1)};
  for (const Box& box : boxes) add_box(plan, model, 0, box);
  check_tiling(plan, model);
  return plan;
}

TEST(PlanBytes, CountsWeightsByDtypeAndStatesInFloat32) {
  const std::vector<Box> rows = {{0, {0, 4, 0, 8}}, {1, {4, 6, 0, 8}}};
  const struct {
    shardrec_optimizer optimizer;
    Bytes first;
  } kCases[] = {
      {SHARDREC_OPTIMIZER_SGD, {4 * 8 * 2, 0}},
      {SHARDREC_OPTIMIZER_ADAGRAD, {4 * 8 * 2, 4 * 8 * 4}},
      {SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, {4 * 8 * 2, 4 * 4}},
      {SHARDREC_OPTIMIZER_ADAM, {4 * 8 * 2, 2 * 4 * 8 * 4}},
      {SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM, {4 * 8 * 2, 4 * 8 * 4 + 4 * 4}},
      {SHARDREC_OPTIMIZER_LAMB, {4 * 8 * 2, 2 * 4 * 8 * 4}},
      {SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB, {4 * 8 * 2, 4 * 8 * 4 + 4 * 4}},
      {SHARDREC_OPTIMIZER_LARS_SGD, {4 * 8 * 2, 4 * 8 * 4}},
  };
  for (const auto& one : kCases) {
    const Model model = one_table(one.optimizer, SHARDREC_ROW_STATISTICS_ROW, SHARDREC_BFLOAT16);
    EXPECT_EQ(bytes_of_box(cut(rows, model), model, 0, 0), one.first) << one.optimizer;
  }
}

TEST(PlanBytes, CountsValuesPerRowOncePerRankWhereTheyAreOverTheWholeRow) {
  // Rank 0 has two boxes of one row range, rank 1 the columns between them.
  const std::vector<Box> columns = {{0, {0, 10, 0, 2}}, {1, {0, 10, 2, 4}}, {0, {0, 10, 6, 2}}};
  const Model row = one_table(SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, SHARDREC_ROW_STATISTICS_ROW);
  EXPECT_EQ(bytes_of_boxes(cut(columns, row), row, 0),
            (std::vector<Bytes>{{80, 40}, {160, 40}, {80, 0}}));
  EXPECT_EQ(bytes_of_box(cut(columns, row), row, 0, 2), (Bytes{80, 0}));
  const Model shard = one_table(SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, SHARDREC_ROW_STATISTICS_SHARD);
  EXPECT_EQ(bytes_of_boxes(cut(columns, shard), shard, 0),
            (std::vector<Bytes>{{80, 40}, {160, 40}, {80, 40}}));
  EXPECT_EQ(bytes_of_box(cut(columns, shard), shard, 0, 2), (Bytes{80, 40}));
  // Row ranges that only begin together share nothing.
  const std::vector<Box> uneven = {{0, {0, 10, 0, 2}}, {0, {0, 5, 2, 6}}, {0, {5, 5, 2, 6}}};
  EXPECT_EQ(bytes_of_boxes(cut(uneven, row), row, 0),
            (std::vector<Bytes>{{80, 40}, {120, 20}, {120, 20}}));
}

TEST(PlanBytes, OfAReplicatedTableAreThoseOfACopy) {
  const Model model = one_table(SHARDREC_OPTIMIZER_ADAM, SHARDREC_ROW_STATISTICS_ROW);
  EXPECT_EQ(bytes_of_whole(model, 0), (Bytes{320, 640}));
}

}  // namespace
}  // namespace shardrec::plan
