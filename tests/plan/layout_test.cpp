#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "plan/cuts.h"
#include "plan/plan.h"
#include "plan/plan_test_util.h"

namespace shardrec::plan {
namespace {

using Boxes = std::vector<Box>;

TEST(RowWise, GivesEveryRankTheSameRowsAndTheLastOnesTheRest) {
  EXPECT_EQ(make_plan(one_table(5, 3), {4, 1}, SHARDREC_SHARDING_ROW_WISE).tables[0].boxes,
            (Boxes{{0, {0, 2, 0, 3}}, {1, {2, 2, 0, 3}}, {2, {4, 1, 0, 3}}}));
  EXPECT_EQ(make_plan(one_table(8, 1), {4, 2}, SHARDREC_SHARDING_ROW_WISE).tables[0].boxes,
            (Boxes{{0, {0, 2, 0, 1}}, {1, {2, 2, 0, 1}}, {2, {4, 2, 0, 1}}, {3, {6, 2, 0, 1}}}));
}

TEST(RowWise, LeavesRanksBeyondTheRowsWithoutBox) {
  EXPECT_EQ(make_plan(one_table(2, 4), {5, 1}, SHARDREC_SHARDING_ROW_WISE).tables[0].boxes,
            (Boxes{{0, {0, 1, 0, 4}}, {1, {1, 1, 0, 4}}}));
}

TEST(ColumnWise, CutsMultiplesOfFourWhereEveryRankGetsFour) {
  EXPECT_EQ(make_plan(one_table(7, 16), {4, 1}, SHARDREC_SHARDING_COLUMN_WISE).tables[0].boxes,
            (Boxes{{0, {0, 7, 0, 4}}, {1, {0, 7, 4, 4}}, {2, {0, 7, 8, 4}}, {3, {0, 7, 12, 4}}}));
  EXPECT_EQ(make_plan(one_table(7, 64), {3, 1}, SHARDREC_SHARDING_COLUMN_WISE).tables[0].boxes,
            (Boxes{{0, {0, 7, 0, 24}}, {1, {0, 7, 24, 20}}, {2, {0, 7, 44, 20}}}));
}

TEST(ColumnWise, GivesTheLastRankWhatIsLeftOfFours) {
  EXPECT_EQ(make_plan(one_table(7, 18), {4, 1}, SHARDREC_SHARDING_COLUMN_WISE).tables[0].boxes,
            (Boxes{{0, {0, 7, 0, 4}}, {1, {0, 7, 4, 4}}, {2, {0, 7, 8, 4}}, {3, {0, 7, 12, 6}}}));
}

TEST(ColumnWise, CutsSingleColumnsWhereFoursAreTooFew) {
  EXPECT_EQ(make_plan(one_table(7, 10), {4, 1}, SHARDREC_SHARDING_COLUMN_WISE).tables[0].boxes,
            (Boxes{{0, {0, 7, 0, 3}}, {1, {0, 7, 3, 3}}, {2, {0, 7, 6, 2}}, {3, {0, 7, 8, 2}}}));
  EXPECT_EQ(make_plan(one_table(7, 3), {5, 1}, SHARDREC_SHARDING_COLUMN_WISE).tables[0].boxes,
            (Boxes{{0, {0, 7, 0, 1}}, {1, {0, 7, 1, 1}}, {2, {0, 7, 2, 1}}}));
}

TEST(Grid, CutsColumnsOverNodesAndRowsInsideThem) {
  // Nodes {0, 1} and {2, 3}; ordered by row, then column.
  EXPECT_EQ(make_plan(one_table(5, 8), {4, 2}, SHARDREC_SHARDING_GRID).tables[0].boxes,
            (Boxes{{0, {0, 3, 0, 4}}, {2, {0, 3, 4, 4}}, {1, {3, 2, 0, 4}}, {3, {3, 2, 4, 4}}}));
}

TEST(Grid, CutsTheRowsOfASmallerLastNodeByItsOwnRanks) {
  // Nodes {0, 1} and {2}.
  EXPECT_EQ(make_plan(one_table(5, 9), {3, 2}, SHARDREC_SHARDING_GRID).tables[0].boxes,
            (Boxes{{0, {0, 3, 0, 4}}, {2, {0, 5, 4, 5}}, {1, {3, 2, 0, 4}}}));
}

TEST(Grid, LeavesOutNodesBeyondTheColumns) {
  EXPECT_EQ(make_plan(one_table(4, 2), {6, 2}, SHARDREC_SHARDING_GRID).tables[0].boxes,
            (Boxes{{0, {0, 2, 0, 1}}, {2, {0, 2, 1, 1}}, {1, {2, 2, 0, 1}}, {3, {2, 2, 1, 1}}}));
}

TEST(TableWise, GivesTablesByFallingBytesToTheLeastLoadedRank) {
  // Elements 10, 40, 20, 30, 25: 40 -> 0, 30 -> 1, 25 -> 2, 20 -> 2 (25 < 30 < 40), 10 -> 1.
  const Model model = tables_of({{10, 1}, {40, 1}, {20, 1}, {30, 1}, {25, 1}});
  const Plan plan = make_plan(model, {3, 1}, SHARDREC_SHARDING_TABLE_WISE);
  EXPECT_EQ(owners(plan), (std::vector<int32_t>{1, 0, 2, 1, 2}));
  EXPECT_EQ(plan.tables[3].boxes, (Boxes{{1, {0, 30, 0, 1}}}));
}

TEST(TableWise, TakesEqualTablesInOrderAndTheLowestOfEqualRanks) {
  const Model model = tables_of({{8, 2}, {4, 4}, {16, 1}, {2, 8}});
  EXPECT_EQ(owners(make_plan(model, {2, 1}, SHARDREC_SHARDING_TABLE_WISE)),
            (std::vector<int32_t>{0, 1, 0, 1}));
}

TEST(TableRowWise, CutsRowsOverTheRanksOfTheLeastLoadedNode) {
  const Model model = tables_of({{4, 1}, {9, 1}});
  const Plan plan = make_plan(model, {4, 2}, SHARDREC_SHARDING_TABLE_ROW_WISE);
  EXPECT_EQ(plan.tables[1].boxes, (Boxes{{0, {0, 5, 0, 1}}, {1, {5, 4, 0, 1}}}));
  EXPECT_EQ(plan.tables[0].boxes, (Boxes{{2, {0, 2, 0, 1}}, {3, {2, 2, 0, 1}}}));
}

TEST(TableRowWise, ComparesNodesByBytesPerRank) {
  // Nodes {0, 1} and {2}. 12 -> node 0 (6 a rank), 10 -> node 1 (10), 8 -> node 0 (10), 2 -> the
  // lower of equals, node 0.
  const Model model = tables_of({{12, 1}, {10, 1}, {8, 1}, {2, 1}});
  const Plan plan = make_plan(model, {3, 2}, SHARDREC_SHARDING_TABLE_ROW_WISE);
  EXPECT_EQ(owners(plan), (std::vector<int32_t>{0, 2, 0, 0}));
  EXPECT_EQ(plan.tables[1].boxes, (Boxes{{2, {0, 10, 0, 1}}}));
}

TEST(TableColumnWise, CutsColumnsOverTheRanksOfTheLeastLoadedNode) {
  const Model model = tables_of({{1, 9}, {2, 8}});
  const Plan plan = make_plan(model, {4, 2}, SHARDREC_SHARDING_TABLE_COLUMN_WISE);
  EXPECT_EQ(plan.tables[1].boxes, (Boxes{{0, {0, 2, 0, 4}}, {1, {0, 2, 4, 4}}}));
  EXPECT_EQ(plan.tables[0].boxes, (Boxes{{2, {0, 1, 0, 4}}, {3, {0, 1, 4, 5}}}));
}

TEST(DataParallel, ReplicatesEveryTable) {
  const Plan plan = make_plan(tables_of({{3, 2}, {5, 1}}), {4, 2}, SHARDREC_SHARDING_DATA_PARALLEL);
  for (const TablePlan& table : plan.tables) EXPECT_EQ(table, (TablePlan{true, {}}));
}

TEST(Mixed, RotatesThroughAllKinds) {
  const Model model = tables_of(std::vector<std::pair<int64_t, int64_t>>(9, {48, 24}));
  const Topology topology{6, 3};
  const Plan plan = make_plan(model, topology, SHARDREC_SHARDING_MIXED);
  std::vector<int> kinds;
  for (const TablePlan& table : plan.tables) {
    kinds.push_back(recognise(table, model.tables[0], topology).value_or(SHARDREC_SHARDING_AUTO));
  }
  EXPECT_EQ(kinds, (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 1, 2}));
}

TEST(Auto, ReplicatesSmallTablesKeepsMiddleOnesWholeAndCutsLargeOnes) {
  // Bytes: 64 KiB, one row more, 10 MiB, the last one larger than a quarter of all.
  const Model model = tables_of({{1024, 16}, {1025, 16}, {163840, 16}});
  const Plan plan = make_plan(model, {4, 2}, SHARDREC_SHARDING_AUTO);
  EXPECT_TRUE(plan.tables[0].replicated);
  EXPECT_EQ(plan.tables[1].boxes.size(), 1U);
  EXPECT_EQ(plan.tables[2].boxes.size(), 4U);
}

TEST(Auto, CutsNothingOnOneRank) {
  const Model model = tables_of({{1025, 16}, {163840, 16}});
  EXPECT_EQ(owners(make_plan(model, {1, 1}, SHARDREC_SHARDING_AUTO)), (std::vector<int32_t>{0, 0}));
}

TEST(Auto, PlacesWholeTablesWhereTheCutOnesLeaveRoom) {
  // Rows of 64 KiB: five of seven are cut 3 + 2, the table of two goes to rank 1.
  const Model model = tables_of({{2, 16384}, {5, 16384}});
  const Plan plan = make_plan(model, {2, 1}, SHARDREC_SHARDING_AUTO);
  EXPECT_EQ(plan.tables[0].boxes, (Boxes{{1, {0, 2, 0, 16384}}}));
  EXPECT_EQ(plan.tables[1].boxes, (Boxes{{0, {0, 3, 0, 16384}}, {1, {3, 2, 0, 16384}}}));
}

// An independent statement of what every cut must be: a tiling, with near-equal parts.
TEST(NamedKinds, TileEveryTableOnEveryTopology) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Model model;
    for (int table = 0; table < 8; ++table) {
      add_table(model, {.name = "t" + std::to_string(table),
                        .rows = 1 + static_cast<int64_t>(random() % 20),
                        .dim = 1 + static_cast<int64_t>(random() % 40)});
    }
    Topology topology{1 + static_cast<int32_t>(random() % 9), 1};
    topology.ranks_per_node =
        1 + static_cast<int32_t>(random() % static_cast<uint32_t>(topology.ranks));
    for (int kind = SHARDREC_SHARDING_AUTO; kind <= SHARDREC_SHARDING_MIXED; ++kind) {
      const Plan plan = make_plan(model, topology, static_cast<shardrec_sharding>(kind));
      check_tiling(plan, model);
      for (size_t i = 0; i < model.tables.size(); ++i) {
        if (plan.tables[i].replicated) continue;
        ASSERT_EQ(count_owners(plan.tables[i], model.tables[i]), "exactly one owner each");
      }
    }
  }
}

TEST(NamedKinds, ArePlannedInASecondForThousandsOfTablesAndRanks) {
  Model model = tables_of({});
  for (int table = 0; table < 5000; ++table) {
    model.tables.push_back({.name = std::to_string(table), .rows = 100 + table, .dim = 64});
  }
  const Plan plan = make_plan(model, {256, 8}, SHARDREC_SHARDING_MIXED);
  check_tiling(plan, model);
  const auto boxes =
      std::accumulate(plan.tables.begin(), plan.tables.end(), size_t{0},
                      [](size_t sum, const TablePlan& table) { return sum + table.boxes.size(); });
  EXPECT_GT(boxes, 300000U);
}

TEST(MakePlan, RefusesImpossibleTopologiesAndKinds) {
  const Model model = one_table(4, 4);
  for (const Topology topology : {Topology{0, 1}, Topology{-1, 1}, Topology{2, 3}, Topology{2, 0},
                                  Topology{(1 << 20) + 1, 1}}) {
    EXPECT_EQ(status_of([&] { make_plan(model, topology, SHARDREC_SHARDING_AUTO); }),
              SHARDREC_INVALID_ARGUMENT);
  }
  EXPECT_EQ(status_of([&] { make_plan(model, {1, 1}, static_cast<shardrec_sharding>(9)); }),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(
      status_of([&] { make_plan(model, {1, 1}, static_cast<shardrec_sharding>(0x7ffffffe)); }),
      SHARDREC_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shardrec::plan
