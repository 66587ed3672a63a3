// Plans that spread expected time, and what time a table is expected to take.
#include <gtest/gtest.h>

#include <string>

#include "plan/plan.h"
#include "plan/plan_test_util.h"
#include "planner/work.h"

namespace shardrec::plan {
namespace {

using compute::MemoryAccess;
using compute::MemoryProfile;

MemoryProfile profile() {
  const auto rate = [](MemoryAccess access, int64_t row_bytes, int64_t bag, int64_t threads,
                       double gb) {
    return compute::RowRate{.access = access,
                            .row_bytes = row_bytes,
                            .bag_length = bag,
                            .threads = threads,
                            .gb_per_second = gb};
  };
  return {
      .rows = {rate(MemoryAccess::kGather, 64, 20, 1, 1), rate(MemoryAccess::kGather, 64, 20, 2, 2),
               rate(MemoryAccess::kGather, 512, 20, 2, 8), rate(MemoryAccess::kUpdate, 64, 0, 2, 4),
               rate(MemoryAccess::kUpdate, 512, 0, 2, 5)}};
}

void add_features(Model& model, int32_t table, int count) {
  for (int i = 0; i < count; ++i) {
    add_feature(model, {.name = "f" + std::to_string(model.features.size()), .table = table});
  }
}

Plan plan_by(shardrec_balance balance, const Model& model, int32_t ranks, shardrec_sharding kind,
             double bag_length = 10) {
  return make_plan(model, {ranks, 1},
                   {.sharding = kind, .bag_length = bag_length, .balance = balance});
}

TEST(ExpectedTime, IsBytesOverTheRateOfTheNearestRows) {
  const Table table{.name = "t", .rows = 1000, .dim = 128};  // rows of 512 bytes
  const Optimizer adam{.kind = SHARDREC_OPTIMIZER_ADAM};
  // 2 bags of 3 ids: gathered 6 (8 + 512) + 2 * 512 at 8 GB/s; updated with two states per element.
  const double gathered = 6 * 520 + 1024;
  const double updated = 6 * (8 + 2 * (512 + 1024)) + 1024;
  EXPECT_EQ(planner::picoseconds_per_sample(table, adam, 2, 128, 3, profile()),
            static_cast<int64_t>(1000 * gathered / 8 + 1000 * updated / 5));
  // 16 of its columns: rows of 64 bytes, the rate with the most threads.
  const Optimizer rowwise{.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD};
  EXPECT_EQ(planner::picoseconds_per_sample(table, rowwise, 1, 16, 1, profile()),
            static_cast<int64_t>(1000 * (72.0 + 64) / 2 + 1000 * (8 + 2 * 68.0 + 64) / 4));
  // 16 bits an element, and sums of 32.
  const Table half{.name = "h", .rows = 1000, .dim = 32, .dtype = SHARDREC_FLOAT16};
  EXPECT_EQ(planner::picoseconds_per_sample(half, {}, 1, 32, 1, profile()),
            static_cast<int64_t>(1000 * (72.0 + 128) / 2 + 1000 * (8 + 2 * 64.0 + 128) / 4));
}

TEST(ExpectedTime, IsBytesWithoutAProfileAndNeverNothingOrTooMuch) {
  const Table table{.name = "t", .rows = 1000, .dim = 16};
  EXPECT_EQ(planner::picoseconds_per_sample(table, {}, 1, 16, 1, {}),
            100 * (72 + 64 + 8 + 128 + 64));
  EXPECT_EQ(planner::picoseconds_per_sample(table, {}, 0, 16, 1, profile()), 1);
  EXPECT_EQ(planner::picoseconds_per_sample(table, {}, 1, 16, 0, {}), 100 * (64 + 64));
  EXPECT_EQ(planner::picoseconds_per_sample(table, {}, 1, 16, 1e300, profile()), 1'000'000'000'000);
}

// Which profile the machine has must not matter here: tables differ in rows and features only.
TEST(BalanceOfTime, SpreadsLookupsWhereBytesWouldNot) {
  Model model = tables_of({{1'000'000, 16}, {20'000, 16}, {20'000, 16}, {20'000, 16}});
  for (int32_t table = 0; table < 4; ++table) add_features(model, table, 1);
  EXPECT_EQ(owners(plan_by(SHARDREC_BALANCE_BYTES, model, 2, SHARDREC_SHARDING_TABLE_WISE)),
            (std::vector<int32_t>{0, 1, 1, 1}));
  EXPECT_EQ(owners(plan_by(SHARDREC_BALANCE_TIME, model, 2, SHARDREC_SHARDING_TABLE_WISE)),
            (std::vector<int32_t>{0, 1, 0, 1}));
  // Three features make a table three times as heavy.
  Model busy = tables_of({{20'000, 16}, {20'000, 16}, {20'000, 16}, {20'000, 16}});
  for (int32_t table = 0; table < 4; ++table) add_features(busy, table, table == 3 ? 3 : 1);
  EXPECT_EQ(owners(plan_by(SHARDREC_BALANCE_TIME, busy, 2, SHARDREC_SHARDING_TABLE_WISE)),
            (std::vector<int32_t>{1, 1, 1, 0}));
}

TEST(BalanceOfTime, CutsTheTableThatTakesMoreThanAnEvenShare) {
  Model model = tables_of({{30'000, 16}, {1'000'000, 16}, {30'000, 16}});
  add_features(model, 0, 8);
  add_features(model, 1, 1);
  add_features(model, 2, 1);
  const Plan bytes = plan_by(SHARDREC_BALANCE_BYTES, model, 2, SHARDREC_SHARDING_AUTO);
  EXPECT_EQ(bytes.tables[0].boxes.size(), 1U);
  EXPECT_EQ(bytes.tables[1].boxes.size(), 2U);
  const Plan time = plan_by(SHARDREC_BALANCE_TIME, model, 2, SHARDREC_SHARDING_AUTO);
  EXPECT_EQ(time.tables[0].boxes.size(), 2U);
  EXPECT_EQ(time.tables[1].boxes.size(), 1U);
  check_tiling(time, model);
}

TEST(BalanceOfTime, PlacesTablesWithoutFeaturesAndBagsWithoutIds) {
  const Model model = tables_of({{20'000, 16}, {20'000, 16}, {20'000, 16}});
  EXPECT_EQ(owners(plan_by(SHARDREC_BALANCE_TIME, model, 3, SHARDREC_SHARDING_TABLE_WISE, 0)),
            (std::vector<int32_t>{0, 1, 2}));
}

}  // namespace
}  // namespace shardrec::plan
