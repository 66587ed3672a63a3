// What a table's options leave to a plan: kinds of sharding, ranks, least columns.
#include "plan/model/limits.h"

#include <gtest/gtest.h>

#include <random>

#include "plan/cuts.h"
#include "plan/plan.h"
#include "plan/plan_test_util.h"

namespace shardrec::plan {
namespace {

using Boxes = std::vector<Box>;

Limits limits(const char* kinds, const char* ranks = "", int64_t min_columns = 1) {
  return {.sharding = *ShardingKinds::of_text(kinds),
          .ranks = *RankSet::of_text(ranks),
          .min_columns = min_columns};
}

Model table_with(int64_t rows, int64_t dim, const Limits& limits) {
  Model model;
  add_table(model, {.name = "t", .rows = rows, .dim = dim, .limits = limits});
  return model;
}

TEST(RankSets, AreReadMergedAndWrittenAsRanges) {
  const std::vector<std::pair<const char*, const char*>> texts = {{"", ""},
                                                                  {"  ", ""},
                                                                  {"7", "7"},
                                                                  {"0-3,7", "0-3, 7"},
                                                                  {" 7 , 0 - 3 ", "0-3, 7"},
                                                                  {"5,4,4-6,9,8", "4-6, 8-9"},
                                                                  {"0-1048575", "0-1048575"},
                                                                  {"1-9,2-3,10", "1-10"}};
  for (const auto& [text, expected] : texts) {
    const auto set = RankSet::of_text(text);
    ASSERT_TRUE(set) << text;
    EXPECT_EQ(set->text(), expected);
    EXPECT_EQ(RankSet::of_text(expected), set);
  }
  for (const char* text : {",", "1,", "-1", "3-1", "1-", "-", "a", "1 2", "1048576", "0-1048576",
                           "99999999999", "+1", "1,,2", "0x1"}) {
    EXPECT_FALSE(RankSet::of_text(text)) << text;
  }
  const RankSet set = *RankSet::of_text("0-3,7");
  for (const int rank : {0, 1, 2, 3, 7}) EXPECT_TRUE(set.has(rank)) << rank;
  for (const int rank : {4, 5, 6, 8, 1048575}) EXPECT_FALSE(set.has(rank)) << rank;
  EXPECT_TRUE(RankSet().has(1048575));
}

TEST(ShardingKindSets, AreMasksAndNames) {
  EXPECT_EQ(ShardingKinds::of_mask(0)->text(), "all");
  EXPECT_EQ(ShardingKinds::of_mask(0xfe)->mask(), 0);
  const auto set = ShardingKinds::of_text("grid, row_wise");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->mask(), 1 << SHARDREC_SHARDING_ROW_WISE | 1 << SHARDREC_SHARDING_GRID);
  EXPECT_EQ(set->text(), "row_wise, grid");
  EXPECT_EQ(ShardingKinds::of_mask(set->mask()), set);
  for (const int64_t mask : {int64_t{1}, int64_t{1} << SHARDREC_SHARDING_MIXED, int64_t{-2}}) {
    EXPECT_FALSE(ShardingKinds::of_mask(mask)) << mask;
  }
  for (const char* text : {"", "auto", "mixed", "row_wise,", "rowwise", "all,grid"}) {
    EXPECT_FALSE(ShardingKinds::of_text(text)) << text;
  }
}

TEST(AllowedSharding, RefusesANamedKindThatTheTableDoesNotAllow) {
  const Model model = table_with(100, 8, limits("row_wise, grid"));
  std::string sentence;
  EXPECT_EQ(status_of([&] { make_plan(model, {2, 2}, SHARDREC_SHARDING_TABLE_WISE); }, &sentence),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(sentence,
            "table \"t\" allows row_wise, grid (ALLOWED_SHARDING), not table_wise, which the plan "
            "asks for (SHARDING); auto and mixed choose what it allows");
  EXPECT_EQ(status_of([&] { make_plan(model, {2, 2}, SHARDREC_SHARDING_ROW_WISE); }), SHARDREC_OK);
}

TEST(AllowedSharding, AutoTakesTheFirstAllowedKindBySize) {
  // 64 KiB are replicated, an even share stays whole, what is larger is cut by rows.
  const struct {
    int64_t rows;
    const char* allowed;
    shardrec_sharding expected;
  } kCases[] = {
      {64, "all", SHARDREC_SHARDING_DATA_PARALLEL},
      {64, "table_wise, row_wise", SHARDREC_SHARDING_TABLE_WISE},
      {64, "column_wise", SHARDREC_SHARDING_COLUMN_WISE},
      {100000, "all", SHARDREC_SHARDING_ROW_WISE},
      {100000, "table_wise, grid", SHARDREC_SHARDING_GRID},
      {100000, "table_wise", SHARDREC_SHARDING_TABLE_WISE},
      {100000, "data_parallel", SHARDREC_SHARDING_DATA_PARALLEL},
  };
  for (const auto& one : kCases) {
    SCOPED_TRACE(one.allowed);
    Model model = table_with(one.rows, 16, limits(one.allowed));
    add_table(model, {.name = "other", .rows = 20000, .dim = 16});
    const Topology topology{4, 2};
    const Plan plan = make_plan(model, topology, SHARDREC_SHARDING_AUTO);
    check_tiling(plan, model);
    EXPECT_EQ(recognise(plan.tables[0], model.tables[0], topology), one.expected);
  }
}

TEST(AllowedSharding, MixedGoesOnToTheNextAllowedKind) {
  Model model;
  for (int i = 0; i < 14; ++i) {
    add_table(
        model,
        {.name = std::to_string(i), .rows = 64, .dim = 16, .limits = limits("row_wise, grid")});
  }
  const Topology topology{4, 2};
  const Plan plan = make_plan(model, topology, SHARDREC_SHARDING_MIXED);
  for (size_t i = 0; i < 14; ++i) {
    // From kind 1 + i mod 7 on: 3, 4, 5 go on to grid (6), 7 and 1 to row_wise (2).
    const bool grid = i % 7 >= 2 && i % 7 <= 5;
    EXPECT_EQ(recognise(plan.tables[i], model.tables[i], topology),
              grid ? SHARDREC_SHARDING_GRID : SHARDREC_SHARDING_ROW_WISE)
        << i;
  }
}

TEST(AllowedRanks, TakeTheCutsOfEachKind) {
  const Topology topology{6, 3};  // nodes {0, 1, 2} and {3, 4, 5}
  const Model model = table_with(12, 8, limits("all", "1, 4-5, 9"));
  const auto boxes = [&](shardrec_sharding kind) {
    const Plan plan = make_plan(model, topology, kind);
    check_tiling(plan, model);
    EXPECT_EQ(recognise(plan.tables[0], model.tables[0], topology), kind);
    return plan.tables[0].boxes;
  };
  EXPECT_EQ(boxes(SHARDREC_SHARDING_TABLE_WISE), (Boxes{{1, {0, 12, 0, 8}}}));
  EXPECT_EQ(boxes(SHARDREC_SHARDING_ROW_WISE),
            (Boxes{{1, {0, 4, 0, 8}}, {4, {4, 4, 0, 8}}, {5, {8, 4, 0, 8}}}));
  EXPECT_EQ(boxes(SHARDREC_SHARDING_COLUMN_WISE),
            (Boxes{{1, {0, 12, 0, 3}}, {4, {0, 12, 3, 3}}, {5, {0, 12, 6, 2}}}));
  EXPECT_EQ(boxes(SHARDREC_SHARDING_GRID),
            (Boxes{{1, {0, 12, 0, 4}}, {4, {0, 6, 4, 4}}, {5, {6, 6, 4, 4}}}));
  // Node 0 has one allowed rank only: the table is whole there.
  const Plan plan = make_plan(model, topology, SHARDREC_SHARDING_TABLE_ROW_WISE);
  EXPECT_EQ(plan.tables[0].boxes, (Boxes{{1, {0, 12, 0, 8}}}));
}

TEST(AllowedRanks, SpreadTablesAmongThemselves) {
  Model model;
  for (int i = 0; i < 4; ++i) {
    add_table(model,
              {.name = std::to_string(i), .rows = 100, .dim = 8, .limits = limits("all", "2-3")});
  }
  EXPECT_EQ(owners(make_plan(model, {4, 4}, SHARDREC_SHARDING_TABLE_WISE)),
            (std::vector<int32_t>{2, 3, 2, 3}));
}

TEST(AllowedRanks, RefuseWhatCannotBe) {
  std::string sentence;
  const Model elsewhere = table_with(100, 8, limits("all", "8-11"));
  EXPECT_EQ(status_of([&] { make_plan(elsewhere, {4, 4}, SHARDREC_SHARDING_AUTO); }, &sentence),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(sentence,
            "table \"t\" is allowed on ranks 8-11 only (ALLOWED_RANKS); the plan is for ranks 0 to "
            "3");
  const Model some = table_with(100, 8, limits("all", "0-1"));
  EXPECT_EQ(status_of([&] { make_plan(some, {4, 4}, SHARDREC_SHARDING_DATA_PARALLEL); }, &sentence),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(sentence,
            "table \"t\" is to be data_parallel, on every rank, and is allowed on ranks 0-1 only "
            "(ALLOWED_RANKS), 2 of the plan's; another kind of sharding, or all ranks, is needed");
  const Model only = table_with(100, 8, limits("data_parallel", "0-1"));
  EXPECT_EQ(status_of([&] { make_plan(only, {4, 4}, SHARDREC_SHARDING_MIXED); }),
            SHARDREC_INVALID_ARGUMENT);
  // All ranks of this topology: nothing is in the way.
  EXPECT_TRUE(make_plan(some, {2, 2}, SHARDREC_SHARDING_AUTO).tables[0].replicated);
  EXPECT_FALSE(make_plan(some, {4, 4}, SHARDREC_SHARDING_AUTO).tables[0].replicated);
}

TEST(MinColumns, LeaveFewerAndWiderParts) {
  EXPECT_EQ(column_parts(64, 8, 1), 8);
  EXPECT_EQ(column_parts(64, 8, 16), 4);
  EXPECT_EQ(column_parts(64, 8, 17), 3);
  EXPECT_EQ(column_parts(18, 8, 6), 2);  // three parts would be of 8, 4 and 6 columns
  EXPECT_EQ(column_parts(5, 8, 5), 1);
  EXPECT_EQ(column_parts(8, 8, 1), 8);
  // Fewer columns than ranks.
  EXPECT_EQ(column_parts(7, 8, 1), 7);
  EXPECT_EQ(column_parts(64, 256, 1), 64);
  EXPECT_EQ(column_parts(1, 8, 1), 1);
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const auto dim = static_cast<int64_t>(1 + random() % 200);
    const auto most = static_cast<int64_t>(1 + random() % 40);
    const auto least = static_cast<int64_t>(1 + random() % static_cast<size_t>(dim));
    const int64_t parts = column_parts(dim, most, least);
    ASSERT_GE(parts, 1);
    ASSERT_LE(parts, most);
    for (int64_t part = 0; part < parts && least > 1; ++part) {
      ASSERT_GE(column_cut(dim, parts, part).size, least) << dim << " " << most << " " << part;
    }
    // One part more would be too narrow somewhere, or there are no ranks for it.
    if (least > 1 && parts < most) {
      int64_t narrowest = dim;
      for (int64_t part = 0; part <= parts; ++part) {
        narrowest = std::min(narrowest, column_cut(dim, parts + 1, part).size);
      }
      ASSERT_LT(narrowest, least) << dim << " " << most;
    }
  }
}

TEST(MinColumns, PartsGoToTheLeastLoadedRanksAndNodes) {
  Model model;
  add_table(model, {.name = "rows", .rows = 400, .dim = 8, .limits = limits("all", "0-1")});
  add_table(model, {.name = "t", .rows = 10, .dim = 16, .limits = limits("all", "", 8)});
  const Topology topology{4, 4};
  PlanOptions options{.sharding = SHARDREC_SHARDING_COLUMN_WISE};
  const Plan columns = make_plan(model, topology, options);
  EXPECT_EQ(columns.tables[0].boxes, (Boxes{{0, {0, 400, 0, 4}}, {1, {0, 400, 4, 4}}}));
  EXPECT_EQ(columns.tables[1].boxes, (Boxes{{2, {0, 10, 0, 8}}, {3, {0, 10, 8, 8}}}));
  EXPECT_EQ(recognise(columns.tables[1], model.tables[1], topology), SHARDREC_SHARDING_COLUMN_WISE);
  const Topology nodes{4, 1};
  options.sharding = SHARDREC_SHARDING_GRID;
  const Plan grid = make_plan(model, nodes, options);
  EXPECT_EQ(grid.tables[1].boxes, (Boxes{{2, {0, 10, 0, 8}}, {3, {0, 10, 8, 8}}}));
  const Model inside = table_with(10, 16, limits("table_column_wise", "", 8));
  EXPECT_EQ(make_plan(inside, topology, SHARDREC_SHARDING_AUTO).tables[0].boxes,
            (Boxes{{0, {0, 10, 0, 8}}, {1, {0, 10, 8, 8}}}));
}

TEST(MinColumns, AreAtMostTheTables) {
  std::string sentence;
  Model model;
  const Table narrow{.name = "t", .rows = 4, .dim = 7, .limits = limits("all", "", 8)};
  EXPECT_EQ(status_of([&] { add_table(model, narrow); }, &sentence), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(sentence,
            "boxes of table \"t\" are to have at least 8 columns (MIN_COLUMNS); accepted: 1 to its "
            "dim, 7");
  EXPECT_TRUE(model.tables.empty());
}

TEST(OnAMesh, TablesAreReplicatedWhereTheyAreToBeOrMayNotBeCut) {
  const PlanOptions automatic{.sharding = SHARDREC_SHARDING_AUTO, .mesh_ranks = 8};
  const Model small = tables_of({{5, 8}, {7, 8}});
  const Plan plan = make_plan(small, {2, 2}, automatic);
  EXPECT_EQ(owners(plan), (std::vector<int32_t>{1, 0}));
  Model many;
  for (int i = 0; i < 14; ++i) {
    add_table(many, {.name = std::to_string(i), .rows = 64, .dim = 16});
  }
  const PlanOptions mixed{.sharding = SHARDREC_SHARDING_MIXED, .mesh_ranks = 8};
  for (const TablePlan& table : make_plan(many, {4, 2}, mixed).tables) {
    EXPECT_FALSE(table.replicated);
  }
  const PlanOptions named{.sharding = SHARDREC_SHARDING_DATA_PARALLEL, .mesh_ranks = 8};
  for (const TablePlan& table : make_plan(small, {2, 2}, named).tables) {
    EXPECT_TRUE(table.replicated);
  }
  const Model only = table_with(100, 8, limits("data_parallel"));
  EXPECT_TRUE(make_plan(only, {2, 2}, automatic).tables[0].replicated);
  EXPECT_TRUE(make_plan(only, {2, 2}, mixed).tables[0].replicated);
}

// The gradients of all ranks of the mesh cross, not those of a sharding group.
TEST(OnAMesh, TheWayOfReplicatingIsTheOneOfFewestBytesOverAllRanks) {
  Model model = table_with(2000, 8, {});
  add_feature(model, {.name = "f", .table = 0});
  PlanOptions options{.sharding = SHARDREC_SHARDING_DATA_PARALLEL, .batch_size = 32};
  const auto way = [&](int ranks) {
    return make_plan(model, {ranks, 1}, options).tables[0].replication;
  };
  const auto of_two = way(2);
  const auto of_many = way(64);
  EXPECT_NE(of_two, of_many);
  options.mesh_ranks = 64;
  EXPECT_EQ(way(2), of_many);
}

TEST(Limits, TravelInTheModelsJsonAndCountInItsFingerprint) {
  const Model plain = table_with(10, 16, {});
  EXPECT_EQ(model_to_json(plain).find("allowed"), std::string::npos);
  for (const Limits& given : {limits("row_wise, grid"), limits("all", "0-3, 7"),
                              limits("all", "", 4), limits("data_parallel", "1", 16)}) {
    const Model model = table_with(10, 16, given);
    const Model copy = model_from_json(model_to_json(model));
    EXPECT_EQ(copy.tables[0].limits, given);
    EXPECT_NE(model_fingerprint(model), model_fingerprint(plain));
  }
  const std::string begin =
      R"({"format": "shardrec-model-1", "tables": [{"name": "t", "rows": 4, "dim": 8, )";
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {R"("allowed_sharding": [])", "at least one"},
      {R"("allowed_sharding": ["auto"])", "\"auto\" is no kind of sharding of one table"},
      {R"("allowed_sharding": ["row_wise,grid"])", "tables[0].allowed_sharding[0]"},
      {R"("allowed_sharding": ["all"])", "\"all\" is no kind"},
      {R"("allowed_ranks": "4-2")", "\"4-2\" are no ranks"},
      {R"("min_columns": 0)", "min_columns"},
      {R"("min_columns": 9)", "MIN_COLUMNS"},
  };
  for (const auto& [member, about] : wrong) {
    std::string sentence;
    EXPECT_EQ(status_of([&] { model_from_json(begin + member + "}]}"); }, &sentence),
              SHARDREC_INVALID_ARGUMENT)
        << member;
    EXPECT_NE(sentence.find(about), std::string::npos) << sentence;
  }
}

// No rank that is not allowed, no box that is too narrow, whatever is asked for.
TEST(Limits, HoldForEveryKindOnRandomTopologies) {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    const auto ranks = static_cast<int32_t>(1 + random() % 9);
    const Topology topology{ranks, static_cast<int32_t>(1 + random() % static_cast<size_t>(ranks))};
    Model model;
    for (int t = 0; t < 5; ++t) {
      const auto dim = static_cast<int64_t>(1 + random() % 40);
      std::string allowed = std::to_string(random() % static_cast<size_t>(ranks));
      if (random() % 2 == 0) allowed += "," + std::to_string(random() % 9);
      add_table(model,
                {.name = std::to_string(t),
                 .rows = static_cast<int64_t>(1 + random() % 50),
                 .dim = dim,
                 .limits = limits("all", random() % 3 == 0 ? "" : allowed.c_str(),
                                  static_cast<int64_t>(1 + random() % static_cast<size_t>(dim)))});
    }
    for (int kind = SHARDREC_SHARDING_AUTO; kind <= SHARDREC_SHARDING_MIXED; ++kind) {
      if (kind == SHARDREC_SHARDING_DATA_PARALLEL) continue;
      const Plan plan = make_plan(model, topology, static_cast<shardrec_sharding>(kind));
      check_tiling(plan, model);
      for (size_t t = 0; t < 5; ++t) {
        const Table& table = model.tables[t];
        EXPECT_TRUE(recognise(plan.tables[t], table, topology)) << kind;
        for (const Box& box : plan.tables[t].boxes) {
          EXPECT_TRUE(table.limits.ranks.has(box.rank)) << kind;
          EXPECT_GE(box.cells.cols, table.limits.min_columns) << kind;
        }
      }
    }
  }
}

// Tables of fewer columns than ranks are cut for the least loaded ranks, and leave none of them empty.
TEST(Limits, ColumnsOfManyTablesReachAllRanks) {
  Model model;
  for (int t = 0; t < 64; ++t) {
    add_table(model, {.name = std::to_string(t), .rows = 1000, .dim = 64});
  }
  for (const auto& [topology, kind] : {std::pair{Topology{256, 8}, SHARDREC_SHARDING_COLUMN_WISE},
                                       {Topology{512, 2}, SHARDREC_SHARDING_GRID}}) {
    const Plan plan = make_plan(model, topology, kind);
    check_tiling(plan, model);
    const auto ranks = static_cast<size_t>(topology.ranks);
    std::vector<int64_t> cells(ranks, 0);
    for (size_t t = 0; t < plan.tables.size(); ++t) {
      EXPECT_EQ(recognise(plan.tables[t], model.tables[t], topology), kind);
      for (const Box& box : plan.tables[t].boxes) {
        EXPECT_EQ(box.cells.cols, 1);
        cells[static_cast<size_t>(box.rank)] += box.cells.area();
      }
    }
    EXPECT_EQ(cells, std::vector<int64_t>(ranks, 64 * 64 * 1000 / topology.ranks));
  }
}

}  // namespace
}  // namespace shardrec::plan
