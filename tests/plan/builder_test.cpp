#include "plan/builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>

#include "plan/covered_cells.h"
#include "plan/plan_test_util.h"
#include "plan/tiling.h"
#include "support/plan_boxes.h"

namespace shardrec::plan {
namespace {

PlanBuilder empty_plan(const Model& model, const Topology& topology) {
  return PlanBuilder(
      {.model = model,
       .plan = {.topology = topology, .tables = std::vector<TablePlan>(model.tables.size())}});
}

std::vector<Box> cut_by_rows(const Table& table, int32_t ranks) {
  std::vector<Box> boxes;
  const int64_t height = table.rows / ranks;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    boxes.push_back({rank, {rank * height, height, 0, table.dim}});
  }
  return boxes;
}

// Column i is cut at a row of its own: a box above the cut and one below.
std::vector<Box> cut_in_two_by_columns(const Table& table, std::mt19937& random) {
  std::vector<Box> boxes;
  for (int64_t col = 0; col < table.dim; ++col) {
    const int64_t cut = 1 + static_cast<int64_t>(random()) % (table.rows - 1);
    boxes.push_back({0, {0, cut, col, 1}});
    boxes.push_back({1, {cut, table.rows - cut, col, 1}});
  }
  return boxes;
}

Box random_box(const Table& table, std::mt19937& random) {
  Box box{static_cast<int32_t>(random() % 4), {}};
  box.cells.row = static_cast<int64_t>(random()) % table.rows;
  box.cells.col = static_cast<int64_t>(random()) % table.dim;
  box.cells.rows =
      1 + static_cast<int64_t>(random()) % std::min<int64_t>(4, table.rows - box.cells.row);
  box.cells.cols =
      1 + static_cast<int64_t>(random()) % std::min<int64_t>(3, table.dim - box.cells.col);
  return box;
}

// The first box, in order, that shares cells with another one.
std::optional<Box> first_overlap(const std::vector<Box>& boxes, const Box& box) {
  for (const Box& other : boxes) {
    if (!intersect(box.cells, other.cells).empty()) return other;
  }
  return std::nullopt;
}

// One after another at its place, each compared with all before it: slow and obvious.
bool insert(std::vector<Box>& boxes, const Box& box) {
  if (first_overlap(boxes, box)) return false;
  const auto place = std::find_if(boxes.begin(), boxes.end(),
                                  [&](const Box& other) { return before(box.cells, other.cells); });
  boxes.insert(place, box);
  return true;
}

TEST(PlanBuilder, TakesRandomBoxesAsAComparisonWithAllOthersDoes) {
  std::mt19937 random(5);
  const Model model = one_table(61, 23);
  int refused = 0;
  for (int round = 0; round < 60; ++round) {
    PlanBuilder builder = empty_plan(model, {4, 2});
    std::vector<Box> expected;
    for (int i = 0; i < 400; ++i) {
      const Box box = random_box(model.tables[0], random);
      const auto other = first_overlap(expected, box);
      std::string sentence;
      const shardrec_status status = status_of([&] { builder.add_box(0, box); }, &sentence);
      ASSERT_EQ(status, other ? SHARDREC_INVALID_ARGUMENT : SHARDREC_OK) << describe(box);
      if (other) {
        ASSERT_NE(sentence.find(describe(*other) + " and " + describe(box)), std::string::npos)
            << sentence;
        ++refused;
      }
      insert(expected, box);
      // Looked at now and then, while boxes still come.
      if (random() % 16 == 0) {
        ASSERT_EQ(builder.plan().tables[0].boxes, expected);
      }
    }
    ASSERT_EQ(builder.plan().tables[0].boxes, expected);
  }
  EXPECT_GT(refused, 10000);
}

TEST(PlanBuilder, GivesThePlanThatIsWrittenDownWhateverTheOrder) {
  std::mt19937 random(3);
  const Model model = tables_of({{64, 8}, {30, 6}});
  Plan expected{{4, 2}, std::vector<TablePlan>(2)};
  expected.tables[0].boxes = cut_by_rows(model.tables[0], 4);
  expected.tables[1].boxes = cut_in_two_by_columns(model.tables[1], random);
  std::sort(expected.tables[1].boxes.begin(), expected.tables[1].boxes.end(),
            [](const Box& a, const Box& b) { return before(a.cells, b.cells); });
  for (int round = 0; round < 50; ++round) {
    std::vector<std::pair<int32_t, Box>> boxes;
    for (int32_t t = 0; t < 2; ++t) {
      for (const Box& box : expected.tables[static_cast<size_t>(t)].boxes)
        boxes.push_back({t, box});
    }
    std::shuffle(boxes.begin(), boxes.end(), random);
    PlanBuilder builder = empty_plan(model, expected.topology);
    for (const auto& [table, box] : boxes) builder.add_box(table, box);
    ASSERT_EQ(plan_to_json(builder.plan(), model), plan_to_json(expected, model));
    ASSERT_EQ(status_of([&] { check_tiling(builder.plan(), model); }), SHARDREC_OK);
  }
}

TEST(PlanBuilder, GoesOnFromAPlanThatWasMadeOtherwise) {
  const Model model = one_table(10, 8);
  Plan half{{4, 2}, std::vector<TablePlan>(1)};
  half.tables[0].boxes = {{0, {0, 4, 0, 8}}, {1, {6, 4, 0, 8}}};
  PlanBuilder builder({.model = model, .plan = half});
  EXPECT_EQ(status_of([&] { builder.add_box(0, {2, {5, 2, 0, 8}}); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(builder.plan(), half);
  builder.add_box(0, {2, {4, 2, 0, 8}});
  EXPECT_EQ(builder.plan().tables[0].boxes[1], (Box{2, {4, 2, 0, 8}}));
  EXPECT_EQ(status_of([&] { check_tiling(builder.plan(), model); }), SHARDREC_OK);
}

TEST(PlanBuilder, NamesBothBoxesThatOverlapAndLeavesThePlanAlone) {
  const Model model = one_table(10, 8);
  PlanBuilder builder = empty_plan(model, {4, 2});
  builder.add_box(0, {3, {0, 5, 0, 8}});
  const Plan before = builder.plan();
  std::string sentence;
  EXPECT_EQ(status_of([&] { builder.add_box(0, {1, {4, 6, 2, 3}}); }, &sentence),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_NE(sentence.find("rows [0, 5) x columns [0, 8) on rank 3"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("rows [4, 10) x columns [2, 5) on rank 1"), std::string::npos)
      << sentence;
  EXPECT_EQ(builder.plan(), before);
}

TEST(PlanBuilder, BoxesAndReplicationExcludeEachOther) {
  const Model model = tables_of({{10, 8}, {3, 3}});
  PlanBuilder builder = empty_plan(model, {4, 2});
  builder.add_box(0, {3, {0, 5, 0, 8}});
  builder.replicate(1, SHARDREC_REPLICATION_SAMPLES);
  EXPECT_EQ(status_of([&] { builder.replicate(0, SHARDREC_REPLICATION_SAMPLES); }),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { builder.add_box(1, {0, {0, 3, 0, 3}}); }), SHARDREC_INVALID_ARGUMENT);
  for (const int32_t table : {-1, 2, INT32_MAX}) {
    EXPECT_EQ(status_of([&] { builder.add_box(table, {0, {0, 1, 0, 1}}); }),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(status_of([&] { builder.replicate(table, SHARDREC_REPLICATION_SAMPLES); }),
              SHARDREC_INVALID_ARGUMENT);
  }
}

// A comparison of each with all would be 8,600,000,000 of them.
TEST(PlanBuilder, TakesAPlanOf131072RanksInAnyOrder) {
  constexpr int32_t kRanks = 1 << 17;
  const Model model = one_table(int64_t{7} * kRanks, 16);
  std::vector<Box> boxes = cut_by_rows(model.tables[0], kRanks);
  const std::vector<Box> expected = boxes;
  for (const bool shuffled : {false, true}) {
    if (shuffled) std::shuffle(boxes.begin(), boxes.end(), std::mt19937(2));
    PlanBuilder builder = empty_plan(model, {kRanks, 8});
    for (const Box& box : boxes) builder.add_box(0, box);
    EXPECT_EQ(builder.plan().tables[0].boxes, expected);
  }
}

// Twice the rectangles: at most 2.5 times the nodes that are looked at.
template <class Cut>
void expect_steps_in_proportion(int64_t rows, int64_t dim, int32_t fewer, Cut cut) {
  std::mt19937 random(9);
  double visits[2];
  for (int i = 0; i < 2; ++i) {
    const int32_t boxes = fewer << i;
    const Model model = one_table(rows, dim << i);
    std::vector<Box> all = cut(model.tables[0], boxes, random);
    std::shuffle(all.begin(), all.end(), random);
    CoveredCells covered(model.tables[0].cells());
    for (const Box& box : all) {
      ASSERT_FALSE(covered.intersects(box.cells));
      covered.add(box.cells);
    }
    for (const Box& box : all) ASSERT_TRUE(covered.intersects(box.cells));
    visits[i] = static_cast<double>(covered.visits());
    EXPECT_LT(visits[i], 400.0 * static_cast<double>(all.size())) << all.size() << " boxes";
  }
  EXPECT_LT(visits[1], 2.5 * visits[0]);
}

TEST(CoveredCells, LooksAtFewNodesForEachRectangle) {
  expect_steps_in_proportion(1 << 20, 4, 8192, [](const Table& table, int32_t boxes, auto&) {
    return cut_by_rows(table, boxes);
  });
  expect_steps_in_proportion(1 << 20, 4096, 4096, [](const Table& table, int32_t, auto& random) {
    return cut_in_two_by_columns(table, random);
  });
}

TEST(CoveredCells, TakesRowsUpToTheLargestTable) {
  const int64_t rows = INT64_MAX - 1;
  CoveredCells covered({0, rows, 0, 2});
  for (int64_t row = 0; row < 100; ++row) {
    covered.add({row, 1, row % 2, 1});
    covered.add({rows - row - 1, 1, row % 2, 1});
  }
  for (int64_t row = 0; row < 100; ++row) {
    EXPECT_TRUE(covered.intersects({row, 1, row % 2, 1}));
    EXPECT_FALSE(covered.intersects({row, 1, 1 - row % 2, 1}));
    EXPECT_TRUE(covered.intersects({rows - row - 1, 1, row % 2, 1}));
  }
  EXPECT_FALSE(covered.intersects({100, rows - 200, 0, 2}));
  EXPECT_TRUE(covered.intersects({0, rows, 1, 1}));
}

}  // namespace
}  // namespace shardrec::plan
