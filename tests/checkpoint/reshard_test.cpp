#include <gtest/gtest.h>

#include <random>

#include "checkpoint/world.h"
#include "core/environment.h"

namespace shardrec::checkpoint {
namespace {

constexpr shardrec_sharding kKinds[] = {
    SHARDREC_SHARDING_AUTO,           SHARDREC_SHARDING_TABLE_WISE,
    SHARDREC_SHARDING_ROW_WISE,       SHARDREC_SHARDING_COLUMN_WISE,
    SHARDREC_SHARDING_TABLE_ROW_WISE, SHARDREC_SHARDING_TABLE_COLUMN_WISE,
    SHARDREC_SHARDING_GRID,           SHARDREC_SHARDING_DATA_PARALLEL,
    SHARDREC_SHARDING_MIXED,
};

plan::Plan random_plan(const plan::Model& model, std::mt19937& random) {
  const auto ranks = static_cast<int32_t>(1 + random() % 5);
  const auto per_node = static_cast<int32_t>(1 + random() % static_cast<uint32_t>(ranks));
  return make_plan(model, {ranks, per_node}, kKinds[random() % std::size(kKinds)]);
}

TEST(Reshard, AnyPlanLoadsWhatAnyOtherSaved) {
  std::mt19937 random(1);
  for (int round = 0; round < 40; ++round) {
    Scratch scratch;
    std::vector<std::pair<int64_t, int64_t>> sizes(1 + random() % 4);
    for (auto& [rows, dim] : sizes) {
      rows = 1 + static_cast<int64_t>(random() % 30);
      dim = 1 + static_cast<int64_t>(random() % 20);
    }
    plan::Model model = model_of(sizes, static_cast<shardrec_optimizer>(1 + round % 8));
    // Of the tables some are 16 bits wide, and some have an optimizer of their own.
    for (plan::Table& table : model.tables) {
      static constexpr shardrec_dtype kDtypes[] = {SHARDREC_FLOAT32, SHARDREC_FLOAT16,
                                                   SHARDREC_BFLOAT16};
      table.dtype = kDtypes[random() % 3];
      if (random() % 3 == 0) {
        table.optimizer =
            plan::Optimizer{.kind = static_cast<shardrec_optimizer>(1 + random() % 8)};
      }
    }
    const plan::Plan from = random_plan(model, random);
    const plan::Plan to = random_plan(model, random);
    expect_ok(save_all(model, from, scratch.path(), 77 + round));
    const Loaded loaded = load_all(model, to, scratch.path());
    expect_ok(loaded.errors);
    ASSERT_EQ(loaded.wrong, 0) << "round " << round;
    for (const int64_t step : loaded.steps) EXPECT_EQ(step, 77 + round);
  }
}

TEST(Reshard, CrossesBlocksOfRowsAndFilesThatAreLargerThanABlock) {
  // 3 MiB and 1.2 MiB of weights: several blocks, also where they are cut.
  Scratch scratch;
  const plan::Model model = model_of({{30011, 26}, {70001, 5}});
  expect_ok(
      save_all(model, make_plan(model, {3, 1}, SHARDREC_SHARDING_ROW_WISE), scratch.path(), 1));
  for (const auto kind :
       {SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_SHARDING_TABLE_WISE, SHARDREC_SHARDING_GRID}) {
    const Loaded loaded = load_all(model, make_plan(model, {4, 2}, kind), scratch.path());
    expect_ok(loaded.errors);
    EXPECT_EQ(loaded.wrong, 0);
  }
}

TEST(Reshard, WritesNothingBesideTheRowsOfAPiece) {
  Scratch scratch;
  const plan::Model model = model_of({{9, 5}, {7, 3}});
  const plan::Plan plan = make_plan(model, {2, 1}, SHARDREC_SHARDING_ROW_WISE);
  expect_ok(save_all(model, plan, scratch.path(), 1));
  const Loaded loaded = load_all(model, plan, scratch.path());
  // Every cell and every row's state once; the gaps between rows keep their filling.
  EXPECT_EQ(loaded.changed, 9 * 5 + 7 * 3 + 9 + 7);
}

TEST(Reshard, TablesAreMatchedByNameWhateverTheirOrder) {
  Scratch scratch;
  const plan::Model model = model_of({{9, 5}, {9, 5}});
  expect_ok(
      save_all(model, make_plan(model, {2, 1}, SHARDREC_SHARDING_ROW_WISE), scratch.path(), 1));
  plan::Model turned = model;
  std::swap(turned.tables[0], turned.tables[1]);
  const plan::Plan plan = make_plan(turned, {1, 1}, SHARDREC_SHARDING_TABLE_WISE);
  RankTables tables(turned, plan, 0, Use::kLoad, 0);
  expect_ok(comm::run_ranks(1, [&](comm::Communicator& communicator) {
    Ranks ranks(communicator);
    Contents wanted = contents_of(turned, plan, 0, tables);
    load(ranks.group(), open(ranks.group(), scratch.path()), wanted, nullptr, [] {});
  }));
  const auto first_of = [&](size_t box) {
    float value = 0;
    std::memcpy(&value, tables.boxes()[box].data, sizeof value);
    return value;
  };
  EXPECT_EQ(first_of(0), weight_at(1, 0, 0));
  EXPECT_EQ(first_of(2), weight_at(0, 0, 0));
}

TEST(Reshard, AModelOfFewerTablesTakesWhatItNeeds) {
  Scratch scratch;
  const plan::Model model = model_of({{9, 5}, {7, 3}});
  expect_ok(save_all(model, make_plan(model, {2, 1}, SHARDREC_SHARDING_GRID), scratch.path(), 1));
  const plan::Model part = model_of({{9, 5}});
  const Loaded loaded =
      load_all(part, make_plan(part, {3, 1}, SHARDREC_SHARDING_ROW_WISE), scratch.path());
  expect_ok(loaded.errors);
  EXPECT_EQ(loaded.wrong, 0);
}

TEST(ShardStatistics, LoadIntoTheSameColumnCutsOnAnyRows) {
  Scratch scratch;
  const plan::Model model =
      model_of({{12, 8}}, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, SHARDREC_ROW_STATISTICS_SHARD);
  expect_ok(save_all(model, make_plan(model, {4, 2}, SHARDREC_SHARDING_GRID), scratch.path(), 1));
  // Grid of 2 nodes: columns [0, 4) and [4, 8); so has column_wise on 2 ranks.
  const Loaded loaded =
      load_all(model, make_plan(model, {2, 2}, SHARDREC_SHARDING_COLUMN_WISE), scratch.path());
  expect_ok(loaded.errors);
  EXPECT_EQ(loaded.wrong, 0);
}

TEST(ShardStatistics, AreRefusedUnderOtherColumnCuts) {
  Scratch scratch;
  const plan::Model model =
      model_of({{12, 12}}, SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, SHARDREC_ROW_STATISTICS_SHARD);
  expect_ok(
      save_all(model, make_plan(model, {3, 1}, SHARDREC_SHARDING_COLUMN_WISE), scratch.path(), 1));
  for (const auto kind : {SHARDREC_SHARDING_TABLE_WISE, SHARDREC_SHARDING_COLUMN_WISE}) {
    const Loaded loaded = load_all(model, make_plan(model, {2, 1}, kind), scratch.path());
    expect_all(loaded.errors, SHARDREC_UNSUPPORTED, "table \"t0\"");
    EXPECT_EQ(loaded.changed, 0);
  }
}

TEST(Save, IsTheSameBytesForTheSameTables) {
  Scratch scratch;
  const plan::Model model = model_of({{9, 5}, {7, 3}});
  const plan::Plan plan = make_plan(model, {3, 2}, SHARDREC_SHARDING_MIXED);
  expect_ok(save_all(model, plan, scratch.path("a"), 5));
  expect_ok(save_all(model, plan, scratch.path("b"), 5));
  const auto names = names_in(scratch.path("a"));
  ASSERT_EQ(names, names_in(scratch.path("b")));
  EXPECT_EQ(names.front(), "manifest.json");
  EXPECT_EQ(names.size(), 4U);
  for (const std::string& name : names) {
    EXPECT_EQ(read_all(scratch.path("a/") + name), read_all(scratch.path("b/") + name)) << name;
  }
}

TEST(Save, RanksThatOwnNothingWriteNoFile) {
  Scratch scratch;
  const plan::Model model = model_of({{2, 4}});
  expect_ok(
      save_all(model, make_plan(model, {4, 1}, SHARDREC_SHARDING_ROW_WISE), scratch.path(), 0));
  EXPECT_EQ(names_in(scratch.path()),
            (std::vector<std::string>{"manifest.json", "rank_00000.safetensors",
                                      "rank_00001.safetensors"}));
}

TEST(Save, AModelWithoutTablesIsACheckpointToo) {
  Scratch scratch;
  const plan::Model model;
  const plan::Plan plan{{2, 1}, {}};
  expect_ok(save_all(model, plan, scratch.path(), 3));
  const Loaded loaded = load_all(model, plan, scratch.path());
  expect_ok(loaded.errors);
  EXPECT_EQ(loaded.steps, (std::vector<int64_t>{3, 3}));
}

}  // namespace
}  // namespace shardrec::checkpoint
