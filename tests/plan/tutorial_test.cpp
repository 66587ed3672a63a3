// The four tables of TorchRec's sharding tutorial on two ranks: which half of which table each rank
// has under each kind of sharding.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "plan/plan_test_util.h"

namespace shardrec::plan {
namespace {

using Boxes = std::vector<Box>;

class Tutorial : public ::testing::Test {
 protected:
  // The boxes of t1 to t4.
  void expect(shardrec_sharding kind, const Topology& topology, const std::vector<Boxes>& boxes) {
    const Plan plan = make_plan(model_, topology, kind);
    check_tiling(plan, model_);
    ASSERT_EQ(boxes.size(), 4U);
    for (size_t t = 0; t < 4; ++t) {
      EXPECT_FALSE(plan.tables[t].replicated) << t;
      EXPECT_EQ(plan.tables[t].boxes, boxes[t]) << "table " << t;
    }
  }

  const Topology one_node_{2, 2};
  const Topology two_nodes_{2, 1};
  Model model_ = [] {
    Model model;
    for (const auto& [name, rows] :
         std::map<std::string, int64_t>{{"t1", 4096}, {"t2", 4096}, {"t3", 1024}, {"t4", 1024}}) {
      add_table(model, {.name = name, .rows = rows, .dim = 64});
    }
    return model;
  }();
};

TEST_F(Tutorial, TableWiseGivesEachRankOneOfEachSize) {
  expect(SHARDREC_SHARDING_TABLE_WISE, one_node_,
         {{{0, {0, 4096, 0, 64}}},
          {{1, {0, 4096, 0, 64}}},
          {{0, {0, 1024, 0, 64}}},
          {{1, {0, 1024, 0, 64}}}});
}

TEST_F(Tutorial, RowWiseHalvesTheRows) {
  expect(SHARDREC_SHARDING_ROW_WISE, one_node_,
         {{{0, {0, 2048, 0, 64}}, {1, {2048, 2048, 0, 64}}},
          {{0, {0, 2048, 0, 64}}, {1, {2048, 2048, 0, 64}}},
          {{0, {0, 512, 0, 64}}, {1, {512, 512, 0, 64}}},
          {{0, {0, 512, 0, 64}}, {1, {512, 512, 0, 64}}}});
}

TEST_F(Tutorial, ColumnWiseHalvesTheColumns) {
  expect(SHARDREC_SHARDING_COLUMN_WISE, one_node_,
         {{{0, {0, 4096, 0, 32}}, {1, {0, 4096, 32, 32}}},
          {{0, {0, 4096, 0, 32}}, {1, {0, 4096, 32, 32}}},
          {{0, {0, 1024, 0, 32}}, {1, {0, 1024, 32, 32}}},
          {{0, {0, 1024, 0, 32}}, {1, {0, 1024, 32, 32}}}});
}

TEST_F(Tutorial, TableRowWiseHalvesTheRowsInsideANode) {
  expect(SHARDREC_SHARDING_TABLE_ROW_WISE, one_node_,
         {{{0, {0, 2048, 0, 64}}, {1, {2048, 2048, 0, 64}}},
          {{0, {0, 2048, 0, 64}}, {1, {2048, 2048, 0, 64}}},
          {{0, {0, 512, 0, 64}}, {1, {512, 512, 0, 64}}},
          {{0, {0, 512, 0, 64}}, {1, {512, 512, 0, 64}}}});
  // A node of one rank has nothing to cut a table over.
  expect(SHARDREC_SHARDING_TABLE_ROW_WISE, two_nodes_,
         {{{0, {0, 4096, 0, 64}}},
          {{1, {0, 4096, 0, 64}}},
          {{0, {0, 1024, 0, 64}}},
          {{1, {0, 1024, 0, 64}}}});
}

TEST_F(Tutorial, TableColumnWiseHalvesTheColumnsInsideANode) {
  expect(SHARDREC_SHARDING_TABLE_COLUMN_WISE, one_node_,
         {{{0, {0, 4096, 0, 32}}, {1, {0, 4096, 32, 32}}},
          {{0, {0, 4096, 0, 32}}, {1, {0, 4096, 32, 32}}},
          {{0, {0, 1024, 0, 32}}, {1, {0, 1024, 32, 32}}},
          {{0, {0, 1024, 0, 32}}, {1, {0, 1024, 32, 32}}}});
}

TEST_F(Tutorial, GridHalvesTheRowsOfOneNodeAndTheColumnsOfTwo) {
  expect(SHARDREC_SHARDING_GRID, one_node_,
         {{{0, {0, 2048, 0, 64}}, {1, {2048, 2048, 0, 64}}},
          {{0, {0, 2048, 0, 64}}, {1, {2048, 2048, 0, 64}}},
          {{0, {0, 512, 0, 64}}, {1, {512, 512, 0, 64}}},
          {{0, {0, 512, 0, 64}}, {1, {512, 512, 0, 64}}}});
  expect(SHARDREC_SHARDING_GRID, two_nodes_,
         {{{0, {0, 4096, 0, 32}}, {1, {0, 4096, 32, 32}}},
          {{0, {0, 4096, 0, 32}}, {1, {0, 4096, 32, 32}}},
          {{0, {0, 1024, 0, 32}}, {1, {0, 1024, 32, 32}}},
          {{0, {0, 1024, 0, 32}}, {1, {0, 1024, 32, 32}}}});
}

TEST_F(Tutorial, DataParallelGivesEveryRankAll) {
  const Plan plan = make_plan(model_, one_node_, SHARDREC_SHARDING_DATA_PARALLEL);
  for (const TablePlan& table : plan.tables) {
    EXPECT_TRUE(table.replicated);
    EXPECT_TRUE(table.boxes.empty());
  }
}

TEST_F(Tutorial, AutoKeepsTablesWholeThatAreUpToAnEvenShare) {
  // 2.5 MiB in all, 1.25 MiB a rank: each of the tables (1 MiB, 256 KiB) fits whole.
  expect(SHARDREC_SHARDING_AUTO, one_node_,
         {{{0, {0, 4096, 0, 64}}},
          {{1, {0, 4096, 0, 64}}},
          {{0, {0, 1024, 0, 64}}},
          {{1, {0, 1024, 0, 64}}}});
}

}  // namespace
}  // namespace shardrec::plan
