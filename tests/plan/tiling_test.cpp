#include "plan/tiling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "plan/plan.h"
#include "plan/plan_test_util.h"
#include "support/plan_boxes.h"

namespace shardrec::plan {
namespace {

// Random cuts of a rectangle into boxes: split in two, again and again.
void split(std::vector<Box>& out, Box box, std::mt19937& random, int depth) {
  const bool by_row = random() % 2 == 0;
  const int64_t size = by_row ? box.cells.rows : box.cells.cols;
  if (depth == 0 || size < 2 || random() % 8 == 0) {
    box.rank = static_cast<int32_t>(random() % 4);
    out.push_back(box);
    return;
  }
  const int64_t at = 1 + static_cast<int64_t>(random()) % (size - 1);
  Box second = box;
  if (by_row) {
    second.cells.row += at;
    second.cells.rows -= at;
    box.cells.rows = at;
  } else {
    second.cells.col += at;
    second.cells.cols -= at;
    box.cells.cols = at;
  }
  split(out, box, random, depth - 1);
  split(out, second, random, depth - 1);
}

void order(std::vector<Box>& boxes) {
  std::sort(boxes.begin(), boxes.end(),
            [](const Box& a, const Box& b) { return before(a.cells, b.cells); });
}

Plan plan_of(const Table& table, std::mt19937& random) {
  Plan plan{{4, 2}, std::vector<TablePlan>(1)};
  split(plan.tables[0].boxes, {0, {0, table.rows, 0, table.dim}}, random, 6);
  order(plan.tables[0].boxes);
  return plan;
}

TEST(CheckTiling, AgreesWithCountingEveryCell) {
  std::mt19937 random(7);
  const Model model = one_table(13, 17);
  int good = 0;
  int bad = 0;
  for (int round = 0; round < 3000; ++round) {
    Plan plan = plan_of(model.tables[0], random);
    std::vector<Box>& boxes = plan.tables[0].boxes;
    // Two thirds are damaged: a box moved, grown, shrunk, dropped or doubled.
    if (round % 3 != 0) {
      Box& box = boxes[random() % boxes.size()];
      switch (random() % 7) {
        case 0:
          box.cells.row = std::max<int64_t>(0, box.cells.row - 1);
          break;
        case 1:
          box.cells.col = std::max<int64_t>(0, box.cells.col - 1);
          break;
        case 2:
          box.cells.rows = std::min(box.cells.rows + 1, model.tables[0].rows - box.cells.row);
          break;
        case 3:
          box.cells.cols = std::min(box.cells.cols + 1, model.tables[0].dim - box.cells.col);
          break;
        case 4:
          if (box.cells.rows > 1) --box.cells.rows;
          break;
        case 5:
          if (boxes.size() > 1) boxes.erase(boxes.begin() + (&box - boxes.data()));
          break;
        default:
          boxes.push_back(box);
      }
      order(boxes);
    }
    const bool expected = count_owners(plan.tables[0], model.tables[0]) == "exactly one owner each";
    const shardrec_status status = status_of([&] { check_tiling(plan, model); });
    ASSERT_EQ(status, expected ? SHARDREC_OK : SHARDREC_INVALID_ARGUMENT) << "round " << round;
    ++(expected ? good : bad);
  }
  EXPECT_GT(good, 900);
  EXPECT_GT(bad, 900);
}

TEST(CheckTiling, NamesAMissingCell) {
  std::mt19937 random(11);
  const Model model = one_table(9, 12);
  for (int round = 0; round < 300; ++round) {
    Plan plan = plan_of(model.tables[0], random);
    std::vector<Box>& boxes = plan.tables[0].boxes;
    const size_t gone = random() % boxes.size();
    const Box hole = boxes[gone];
    boxes.erase(boxes.begin() + static_cast<int64_t>(gone));
    std::string sentence;
    ASSERT_EQ(status_of([&] { check_tiling(plan, model); }, &sentence), SHARDREC_INVALID_ARGUMENT);
    const std::string cell = "no box owns row " + std::to_string(hole.cells.row) + ", column " +
                             std::to_string(hole.cells.col) + " of table \"t0\"";
    ASSERT_NE(sentence.find(cell), std::string::npos) << sentence;
  }
}

TEST(CheckTiling, RefusesBoxesOutsideTheTableEmptyOrWithoutRank) {
  const Model model = one_table(4, 4);
  const int64_t huge = INT64_MAX;
  for (const Box& box : {Box{0, {0, 5, 0, 4}}, Box{0, {0, 4, 0, 5}}, Box{0, {-1, 4, 0, 4}},
                         Box{0, {0, 4, -1, 4}}, Box{0, {0, 0, 0, 4}}, Box{0, {0, 4, 0, 0}},
                         Box{0, {0, -4, 0, 4}}, Box{2, {0, 4, 0, 4}}, Box{-1, {0, 4, 0, 4}},
                         Box{0, {1, huge, 0, 4}}, Box{0, {0, 4, 3, huge}}, Box{0, {4, 1, 0, 4}}}) {
    Plan plan{{2, 1}, {{false, {box}}}};
    EXPECT_EQ(status_of([&] { check_tiling(plan, model); }), SHARDREC_INVALID_ARGUMENT)
        << describe(box);
    Plan empty{{2, 1}, std::vector<TablePlan>(1)};
    EXPECT_EQ(status_of([&] { add_box(empty, model, 0, box); }), SHARDREC_INVALID_ARGUMENT);
    EXPECT_TRUE(empty.tables[0].boxes.empty());
  }
}

TEST(CheckTiling, RefusesReplicatedTablesWithBoxesAndPlansForOtherModels) {
  const Model model = one_table(4, 4);
  EXPECT_EQ(status_of([&] { check_tiling({{1, 1}, {{true, {{0, {0, 4, 0, 4}}}}}}, model); }),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { check_tiling({{1, 1}, {}}, model); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] { check_tiling({{1, 1}, {{true, {}}}}, model); }), SHARDREC_OK);
  EXPECT_EQ(status_of([&] { check_tiling({{1, 1}, {{false, {}}}}, model); }),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(status_of([&] {
              check_tiling({{1, 1}, {{false, {{0, {2, 2, 0, 4}}, {0, {0, 2, 0, 4}}}}}}, model);
            }),
            SHARDREC_INVALID_ARGUMENT);
}

TEST(CheckTiling, TakesMomentsForATableOfManyThousandBoxes) {
  const Model model = one_table(int64_t{1} << 30, 256);
  Plan plan{{4, 2}, std::vector<TablePlan>(1)};
  const int64_t height = int64_t{1} << 20;
  for (int64_t row = 0; row < 1024; ++row) {
    for (int64_t col = 0; col < 64; ++col) {
      plan.tables[0].boxes.push_back(
          {static_cast<int32_t>(col % 4), {row * height, height, col * 4, 4}});
    }
  }
  EXPECT_EQ(status_of([&] { check_tiling(plan, model); }), SHARDREC_OK);
  plan.tables[0].boxes[40000].cells.cols = 3;
  EXPECT_EQ(status_of([&] { check_tiling(plan, model); }), SHARDREC_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace shardrec::plan
