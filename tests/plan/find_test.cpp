// Tables, boxes and features by number: what is found, and what is said of a number that none has.
#include "plan/find.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "support/plan_boxes.h"

namespace shardrec::plan {
namespace {

class Find : public ::testing::Test {
 protected:
  void SetUp() override {
    add_table(model_, {.name = "users", .rows = 10, .dim = 4});
    add_table(model_, {.name = "items", .rows = 6, .dim = 2});
    add_feature(model_, {.name = "clicks", .table = 1});
    add_feature(model_, {.name = "user", .table = 0});
    add_feature(model_, {.name = "history", .table = 1, .pooling = SHARDREC_POOLING_NONE});
    plan_.topology = {.ranks = 2, .ranks_per_node = 2};
    plan_.tables.resize(2);
    add_box(plan_, model_, 0, {.rank = 0, .cells = {.row = 0, .rows = 5, .col = 0, .cols = 4}});
    add_box(plan_, model_, 0, {.rank = 1, .cells = {.row = 5, .rows = 5, .col = 0, .cols = 4}});
    replicate(plan_, model_, 1, SHARDREC_REPLICATION_SAMPLES);
  }

  template <class Body>
  static void expect_not_found(const Body& body, int64_t value, int64_t limit) {
    try {
      body();
      ADD_FAILURE() << value << " was found";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_NOT_FOUND);
      EXPECT_EQ(error.parts().value, value);
      EXPECT_EQ(error.parts().limit, limit);
    }
  }

  Model model_;
  Plan plan_;
};

TEST_F(Find, BoxesByNumber) {
  EXPECT_EQ(&find_table(plan_, 1), &plan_.tables[1]);
  EXPECT_EQ(find_box(plan_, model_, 0, 1).cells.row, 5);
  EXPECT_EQ(find_box_bytes(plan_, model_, 0, 1), bytes_of_box(plan_, model_, 0, 1));
  for (const int32_t table : {-1, 2}) {
    expect_not_found([&] { (void)find_table(plan_, table); }, table, 2);
    expect_not_found([&] { (void)find_box(plan_, model_, table, 0); }, table, 2);
  }
  for (const int32_t box : {-1, 2}) {
    expect_not_found([&] { (void)find_box(plan_, model_, 0, box); }, box, 2);
    expect_not_found([&] { (void)find_box_bytes(plan_, model_, 0, box); }, box, 2);
  }
}

TEST_F(Find, AReplicatedTableHasNoBoxesButBytesAsOne) {
  expect_not_found([&] { (void)find_box(plan_, model_, 1, 0); }, 0, 0);
  const Box copy = find_box_or_copy(plan_, model_, 1, 0);
  EXPECT_EQ(copy.rank, -1);
  EXPECT_EQ(copy.cells, model_.tables[1].cells());
  expect_not_found([&] { (void)find_box_or_copy(plan_, model_, 1, 1); }, 1, 1);
  EXPECT_EQ(find_box_or_copy(plan_, model_, 0, 1).cells.row, 5);
  expect_not_found([&] { (void)find_model_table(model_, 2); }, 2, 2);
  EXPECT_EQ(&find_model_table(model_, 1), &model_.tables[1]);
  EXPECT_EQ(find_box_bytes(plan_, model_, 1, 0), bytes_of_whole(model_, 1));
  EXPECT_EQ(find_box_bytes(plan_, model_, 1, 0).weights, 6 * 2 * 4);
  expect_not_found([&] { (void)find_box_bytes(plan_, model_, 1, 1); }, 1, 1);
}

TEST_F(Find, ColumnsOfAFeatureInItsOutput) {
  EXPECT_EQ(find_feature_columns(model_, 0).output, 0);
  EXPECT_EQ(find_feature_columns(model_, 2).output, 1);
  const FeatureColumns clicks = find_feature_columns(model_, 0);
  EXPECT_EQ(clicks.first, 4);  // behind those of the first table
  EXPECT_EQ(clicks.count, 2);
  EXPECT_EQ(clicks.output_width, 6);
  const FeatureColumns history = find_feature_columns(model_, 2);
  EXPECT_EQ(history.first, 0);
  EXPECT_EQ(history.count, 2);
  EXPECT_EQ(history.output_width, 2);
  for (const int32_t feature : {-1, 3}) {
    expect_not_found([&] { (void)find_feature_columns(model_, feature); }, feature, 3);
  }
}

}  // namespace
}  // namespace shardrec::plan
