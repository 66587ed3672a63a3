#include "plan/model/rectangle.h"

#include <gtest/gtest.h>

#include <vector>

namespace shardrec::plan {
namespace {

const Rectangle kTable{0, 10, 0, 8};

TEST(Rectangle, ContainsWhatLiesInsideAndIsNotEmpty) {
  EXPECT_TRUE(kTable.contains(kTable));
  EXPECT_TRUE(kTable.contains({9, 1, 7, 1}));
  EXPECT_TRUE((Rectangle{3, 4, 2, 2}.contains({4, 2, 3, 1})));
  for (const Rectangle& outside :
       {Rectangle{-1, 2, 0, 1}, Rectangle{0, 1, -1, 2}, Rectangle{9, 2, 0, 1},
        Rectangle{0, 1, 7, 2}, Rectangle{10, 1, 0, 1}, Rectangle{0, 0, 0, 1},
        Rectangle{0, 1, 0, -1}, Rectangle{INT64_MAX, 1, 0, 1}, Rectangle{1, INT64_MAX, 0, 1},
        Rectangle{INT64_MIN, 1, 0, 1}, Rectangle{0, INT64_MIN, 0, 1},
        Rectangle{0, 1, INT64_MAX, INT64_MAX}}) {
    EXPECT_FALSE(kTable.contains(outside))
        << outside.row << " " << outside.rows << " " << outside.col << " " << outside.cols;
  }
  EXPECT_FALSE((Rectangle{3, 4, 2, 2}.contains({2, 2, 2, 1})));
}

TEST(Rectangle, IntersectsInTheCellsOfBoth) {
  const Rectangle a{2, 5, 0, 4};
  EXPECT_EQ(intersect(a, {4, 9, 1, 2}), (Rectangle{4, 3, 1, 2}));
  EXPECT_EQ(intersect({4, 9, 1, 2}, a), (Rectangle{4, 3, 1, 2}));
  EXPECT_EQ(intersect(a, a), a);
  EXPECT_TRUE(intersect(a, {7, 1, 0, 4}).empty());
  EXPECT_TRUE(intersect(a, {2, 5, 4, 1}).empty());
  EXPECT_TRUE(intersect(a, {9, 1, 9, 1}).empty());
  EXPECT_EQ(a.area(), 20);
}

// Of a table that begins anywhere; plans' tables begin at 0 (tiling_test.cpp).
TEST(Rectangle, TilingFaultsNameRectanglesAndCells) {
  const Rectangle table{10, 4, 20, 6};
  const std::vector<Rectangle> whole = {{10, 2, 20, 6}, {12, 2, 20, 3}, {12, 2, 23, 3}};
  EXPECT_FALSE(find_tiling_fault(table, whole));
  auto overlapping = whole;
  overlapping[1].cols = 4;
  const auto overlap = find_tiling_fault(table, overlapping);
  ASSERT_TRUE(overlap && overlap->overlap);
  EXPECT_EQ(overlap->first, 1U);
  EXPECT_EQ(overlap->second, 2U);
  auto missing = whole;
  missing[1].cols = 2;
  const auto gap = find_tiling_fault(table, missing);
  ASSERT_TRUE(gap && !gap->overlap);
  EXPECT_EQ(gap->row, 12);
  EXPECT_EQ(gap->col, 22);
}

}  // namespace
}  // namespace shardrec::plan
