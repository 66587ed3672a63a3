// Models and plans through the C API: what was put in comes out, also through JSON.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "capi_test.h"
#include "shardrec/shardrec.hpp"
#include "support/structs.h"

namespace shardrec::test {
namespace {

std::string json_of(shardrec_model* model) {
  char* text = nullptr;
  EXPECT_OK(shardrec_model_to_json(model, &text));
  return take(text);
}

std::string json_of(shardrec_plan* plan) {
  char* text = nullptr;
  EXPECT_OK(shardrec_plan_to_json(plan, &text));
  return take(text);
}

Options options_with(shardrec_options_kind kind,
                     const std::vector<std::pair<shardrec_option, const char*>>& values) {
  Options options;
  EXPECT_OK(shardrec_options_create(kind, options.out()));
  for (const auto& [key, value] : values) EXPECT_OK(shardrec_options_set_text(options, key, value));
  return options;
}

Model some_model() {
  Model model;
  EXPECT_OK(shardrec_model_create(nullptr, model.out()));
  const Options optimizer =
      options_with(SHARDREC_OPTIONS_OPTIMIZER, {{SHARDREC_OPTION_OPTIMIZER, "rowwise_adagrad"},
                                                {SHARDREC_OPTION_LEARNING_RATE, "0.1"},
                                                {SHARDREC_OPTION_EPS, "1e-10"},
                                                {SHARDREC_OPTION_WEIGHT_DECAY, "0.02"},
                                                {SHARDREC_OPTION_WEIGHT_DECAY_MODE, "decouple"},
                                                {SHARDREC_OPTION_MAX_GRADIENT, "3"},
                                                {SHARDREC_OPTION_ROW_STATISTICS, "shard"}});
  EXPECT_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, optimizer));
  const Options table = options_with(SHARDREC_OPTIONS_TABLE, {{SHARDREC_OPTION_INIT_MIN, "-0.25"},
                                                              {SHARDREC_OPTION_INIT_MAX, "0.125"}});
  int32_t index = -1;
  EXPECT_OK(shardrec_model_add_table(model, "na\"me \xf0\x9f\x98\x80", 943, 64, table, &index));
  EXPECT_EQ(index, 0);
  const Options zeros = options_with(SHARDREC_OPTIONS_TABLE, {{SHARDREC_OPTION_INIT, "zeros"}});
  EXPECT_OK(shardrec_model_add_table(model, "item", int64_t{1} << 40, 8, zeros, &index));
  EXPECT_EQ(index, 1);
  EXPECT_OK(shardrec_model_add_feature(model, 1, "item_id", SHARDREC_POOLING_MEAN));
  EXPECT_OK(shardrec_model_add_feature(model, 0, "user_id", SHARDREC_POOLING_SUM));
  EXPECT_OK(shardrec_model_add_feature(model, 1, "history", SHARDREC_POOLING_SUM));
  return model;
}

TEST(Model, OutputColumnsAreTableMajor) {
  const Model model = some_model();
  const std::vector<std::pair<int64_t, int64_t>> expected = {{64, 8}, {0, 64}, {72, 8}};
  for (int32_t feature = 0; feature < 3; ++feature) {
    shardrec_feature out{};
    out.struct_size = sizeof out;
    EXPECT_OK(shardrec_model_feature(model, feature, &out, nullptr));
    EXPECT_EQ(out.column, expected[static_cast<size_t>(feature)].first);
    EXPECT_EQ(out.columns, expected[static_cast<size_t>(feature)].second);
    EXPECT_EQ(out.width, 80);
  }
}

// What the JSON says, without JSON.
TEST(Model, TellsItsTablesAndFeatures) {
  Model model = some_model();
  const Options adam =
      options_with(SHARDREC_OPTIONS_OPTIMIZER,
                   {{SHARDREC_OPTION_OPTIMIZER, "adam"}, {SHARDREC_OPTION_LEARNING_RATE, "0.25"}});
  ASSERT_OK(shardrec_model_set_optimizer(model, 1, adam));
  const Options half = options_with(SHARDREC_OPTIONS_TABLE, {{SHARDREC_OPTION_DTYPE, "bfloat16"}});
  ASSERT_OK(shardrec_model_add_table(model, "half", 7, 3, half, nullptr));
  ASSERT_OK(shardrec_model_add_feature(model, 2, "clicks", SHARDREC_POOLING_NONE));
  ASSERT_OK(shardrec_model_add_feature(model, 0, "views", SHARDREC_POOLING_NONE));

  shardrec_model_size size{};
  size.struct_size = sizeof size;
  ASSERT_OK(shardrec_model_info(model, &size));
  EXPECT_EQ(size.tables, 3);
  EXPECT_EQ(size.features, 5);
  EXPECT_EQ(size.sequences, 2);
  EXPECT_EQ(size.reserved, 0);
  EXPECT_EQ(size.width, 80);

  const auto table = [&](int32_t index, const std::string& name, const shardrec_table& expected) {
    shardrec_table out{};
    out.struct_size = sizeof out;
    char* text = nullptr;
    ASSERT_OK(shardrec_model_table(model, index, &out, &text));
    EXPECT_EQ(take(text), name);
    EXPECT_EQ(out.rows, expected.rows);
    EXPECT_EQ(out.dim, expected.dim);
    EXPECT_EQ(out.dtype, expected.dtype);
    EXPECT_EQ(out.optimizer, expected.optimizer);
    EXPECT_EQ(out.learning_rate, expected.learning_rate);
    EXPECT_EQ(out.states, expected.states);
    EXPECT_EQ(out.features, expected.features);
  };
  table(0, "na\"me \xf0\x9f\x98\x80",
        {.rows = 943,
         .dim = 64,
         .dtype = SHARDREC_FLOAT32,
         .optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
         .learning_rate = 0.1,
         .states = 1,
         .features = 2});
  table(1, "item",
        {.rows = int64_t{1} << 40,
         .dim = 8,
         .dtype = SHARDREC_FLOAT32,
         .optimizer = SHARDREC_OPTIMIZER_ADAM,
         .learning_rate = 0.25,
         .states = 2,
         .features = 2});
  table(2, "half",
        {.rows = 7,
         .dim = 3,
         .dtype = SHARDREC_BFLOAT16,
         .optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
         .learning_rate = 0.1,
         .states = 1,
         .features = 1});

  const auto feature = [&](int32_t index, const std::string& name,
                           const shardrec_feature& expected) {
    shardrec_feature out{};
    out.struct_size = sizeof out;
    char* text = nullptr;
    ASSERT_OK(shardrec_model_feature(model, index, &out, &text));
    EXPECT_EQ(take(text), name);
    EXPECT_EQ(out.table, expected.table);
    EXPECT_EQ(out.pooling, expected.pooling);
    EXPECT_EQ(out.output, expected.output);
    EXPECT_EQ(out.reserved, 0);
    EXPECT_EQ(out.column, expected.column);
    EXPECT_EQ(out.columns, expected.columns);
    EXPECT_EQ(out.width, expected.width);
  };
  feature(0, "item_id",
          {.table = 1, .pooling = SHARDREC_POOLING_MEAN, .column = 64, .columns = 8, .width = 80});
  feature(3, "clicks",
          {.table = 2, .pooling = SHARDREC_POOLING_NONE, .output = 1, .columns = 3, .width = 3});
  feature(4, "views",
          {.table = 0, .pooling = SHARDREC_POOLING_NONE, .output = 2, .columns = 64, .width = 64});

  // The optimizer of one table is the model's again.
  ASSERT_OK(shardrec_model_set_optimizer(model, 1, nullptr));
  table(1, "item",
        {.rows = int64_t{1} << 40,
         .dim = 8,
         .dtype = SHARDREC_FLOAT32,
         .optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
         .learning_rate = 0.1,
         .states = 1,
         .features = 2});
}

TEST(Model, NoTableAndNoFeatureLeaveTheOutsAlone) {
  const Model model = some_model();
  shardrec_table table{.struct_size = sizeof table, .rows = -7};
  shardrec_feature feature{.struct_size = sizeof feature, .width = -7};
  char* name = nullptr;
  for (const int32_t index : {-1, 2, 3, INT32_MAX}) {
    EXPECT_EQ(shardrec_model_table(model, index, &table, &name), SHARDREC_NOT_FOUND) << index;
    EXPECT_TRUE(contains(shardrec_last_error(), "the model has 2 tables")) << shardrec_last_error();
    if (index == 2) continue;
    EXPECT_EQ(shardrec_model_feature(model, index, &feature, &name), SHARDREC_NOT_FOUND) << index;
    EXPECT_TRUE(contains(shardrec_last_error(), "the model has 3 features"))
        << shardrec_last_error();
  }
  table.struct_size = 0;
  EXPECT_EQ(shardrec_model_table(model, 0, &table, &name), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(shardrec_model_table(model, 0, nullptr, &name), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(table.rows, -7);
  EXPECT_EQ(feature.width, -7);
  EXPECT_EQ(name, nullptr);
}

TEST(Model, JsonHoldsEverythingAndReadsBack) {
  const Model model = some_model();
  const std::string json = json_of(model);
  for (const char* part :
       {"\"shardrec-model-1\"", "\"rowwise_adagrad\"", "\"learning_rate\": 0.1", "\"eps\": 1e-10",
        "\"decouple\"", "1099511627776", "\"zeros\"", "-0.25", "\"mean\"", "\"history\""}) {
    EXPECT_TRUE(contains(json, part)) << part << " is not in " << json;
  }
  Model copy;
  ASSERT_OK(shardrec_model_from_json(json.c_str(), copy.out()));
  EXPECT_EQ(json_of(copy), json);
}

TEST(Model, UnknownJsonKeysAreRefusedWithTheirPlace) {
  std::string json = json_of(some_model());
  const size_t at = json.find("\"rows\"");
  ASSERT_NE(at, std::string::npos);
  json.insert(at, "\"colour\": 3, ");
  shardrec_model* model = nullptr;
  EXPECT_EQ(shardrec_model_from_json(json.c_str(), &model), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(model, nullptr);
  EXPECT_TRUE(contains(shardrec_last_error(), "colour")) << shardrec_last_error();
  EXPECT_TRUE(contains(shardrec_last_error(), "tables[0]")) << shardrec_last_error();
}

TEST(Model, ItsOptionsMayGoAfterwards) {
  Model model;
  ASSERT_OK(shardrec_model_create(nullptr, model.out()));
  Options table = options_with(SHARDREC_OPTIONS_TABLE, {{SHARDREC_OPTION_INIT, "zeros"}});
  ASSERT_OK(shardrec_model_add_table(model, "t", 10, 4, table, nullptr));
  ASSERT_OK(shardrec_options_set_text(table, SHARDREC_OPTION_INIT, "uniform"));
  shardrec_options_destroy(table.out());
  EXPECT_TRUE(contains(json_of(model), "zeros"));
}

struct BoxNumbers {
  int32_t rank;
  int64_t row, rows, col, cols;
  bool operator==(const BoxNumbers&) const = default;
};

std::vector<BoxNumbers> boxes_of(shardrec_plan* plan, int32_t table) {
  int32_t count = -1;
  EXPECT_OK(shardrec_plan_box_count(plan, table, &count));
  std::vector<BoxNumbers> boxes;
  for (int32_t box = 0; box < count; ++box) {
    shardrec_box out{};
    EXPECT_OK(read_box(plan, table, box, &out));
    boxes.push_back({out.rank, out.row, out.rows, out.col, out.cols});
  }
  return boxes;
}

TEST(Plan, BoxesGivenByHandComeBackInOrder) {
  const Model model = some_model();
  Topology topology;
  ASSERT_OK(shardrec_topology_create(3, 2, nullptr, topology.out()));
  Plan plan;
  ASSERT_OK(shardrec_plan_create_empty(model, topology, nullptr, plan.out()));
  EXPECT_EQ(shardrec_plan_check(plan), SHARDREC_INVALID_ARGUMENT);
  ASSERT_OK(add_box(plan, 0, 2, 500, 443, 0, 64));
  ASSERT_OK(add_box(plan, 0, 1, 0, 500, 40, 24));
  ASSERT_OK(add_box(plan, 0, 1, 0, 500, 0, 40));
  ASSERT_OK(shardrec_plan_replicate(plan, 1, SHARDREC_REPLICATION_SAMPLES));
  EXPECT_OK(shardrec_plan_check(plan));
  const std::vector<BoxNumbers> expected = {
      {1, 0, 500, 0, 40}, {1, 0, 500, 40, 24}, {2, 500, 443, 0, 64}};
  EXPECT_EQ(boxes_of(plan, 0), expected);
  EXPECT_TRUE(boxes_of(plan, 1).empty());

  const std::string json = json_of(plan);
  Plan copy;
  ASSERT_OK(shardrec_plan_from_json(model, json.c_str(), copy.out()));
  EXPECT_EQ(json_of(copy), json);
  EXPECT_EQ(boxes_of(copy, 0), expected);
}

TEST(Plan, EveryNamedKindIsATilingAndReadsBackFromJson) {
  const Model model = some_model();
  for (const auto& [ranks, per_node] : std::vector<std::pair<int, int>>{{1, 1}, {4, 2}, {5, 2}}) {
    Topology topology;
    ASSERT_OK(shardrec_topology_create(ranks, per_node, nullptr, topology.out()));
    for (int kind = SHARDREC_SHARDING_AUTO; kind <= SHARDREC_SHARDING_MIXED; ++kind) {
      SCOPED_TRACE(kind);
      Options options;
      ASSERT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, options.out()));
      ASSERT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, kind));
      Plan plan;
      ASSERT_OK(shardrec_plan_create(model, topology, options, plan.out()));
      EXPECT_OK(shardrec_plan_check(plan));
      Plan copy;
      ASSERT_OK(shardrec_plan_from_json(model, json_of(plan).c_str(), copy.out()));
      EXPECT_EQ(json_of(copy), json_of(plan));
      char* text = nullptr;
      EXPECT_OK(shardrec_plan_to_text(plan, &text));
      EXPECT_TRUE(contains(text, "item")) << text;
      shardrec_text_free(text);
    }
  }
}

TEST(Plan, KeepsItsModelWhenTheModelChanges) {
  Model model = some_model();
  Topology topology;
  ASSERT_OK(shardrec_topology_create(2, 2, nullptr, topology.out()));
  Plan plan;
  ASSERT_OK(shardrec_plan_create(model, topology, nullptr, plan.out()));
  const std::string before = json_of(plan);
  ASSERT_OK(shardrec_model_add_table(model, "later", 10, 4, nullptr, nullptr));
  shardrec_model_destroy(model.out());
  shardrec_topology_destroy(topology.out());
  EXPECT_EQ(json_of(plan), before);
  EXPECT_OK(shardrec_plan_check(plan));
}

TEST(Topology, ComesBackFromJsonAndRefusesWhatIsNone) {
  Topology topology;
  ASSERT_OK(shardrec_topology_create(6, 4, nullptr, topology.out()));
  char* text = nullptr;
  ASSERT_OK(shardrec_topology_to_json(topology, &text));
  const std::string json = text;
  shardrec_text_free(text);
  EXPECT_EQ(json, R"({"format": "shardrec-topology-1", "ranks": 6, "ranks_per_node": 4})");
  Topology copy;
  ASSERT_OK(shardrec_topology_from_json(json.c_str(), copy.out()));
  ASSERT_OK(shardrec_topology_to_json(copy, &text));
  EXPECT_EQ(json, text);
  shardrec_text_free(text);

  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"", "topology"},
      {R"({"format": "shardrec-plan-1", "ranks": 2, "ranks_per_node": 2})", "format"},
      {R"({"format": "shardrec-topology-1", "ranks": 2})", "ranks_per_node"},
      {R"({"format": "shardrec-topology-1", "ranks": 2, "ranks_per_node": 3})",
       "topology: ranks: "},
      {R"({"format": "shardrec-topology-1", "ranks": 0, "ranks_per_node": 1})", "ranks"},
      {R"({"format": "shardrec-topology-1", "ranks": 2, "ranks_per_node": 1, "gpus": 1})", "gpus"},
  };
  for (const auto& [bad, about] : wrong) {
    shardrec_topology* out = nullptr;
    EXPECT_EQ(shardrec_topology_from_json(bad, &out), SHARDREC_INVALID_ARGUMENT) << bad;
    EXPECT_EQ(out, nullptr);
    EXPECT_TRUE(contains(shardrec_last_error(), about)) << shardrec_last_error();
  }
}

// Bytes of the boxes of rank 0, and of what a collection on one rank takes by them.
TEST(Plan, BytesOfBoxesAreWhatACollectionTakes) {
  for (const char* optimizer : {"sgd", "adagrad", "rowwise_adagrad", "partial_rowwise_adam"}) {
    for (const char* statistics : {"row", "shard"}) {
      SCOPED_TRACE(std::string(optimizer) + " " + statistics);
      Model model;
      ASSERT_OK(shardrec_model_create(nullptr, model.out()));
      ASSERT_OK(shardrec_model_add_table(model, "cut", 943, 64, nullptr, nullptr));
      ASSERT_OK(shardrec_model_add_table(model, "replicated", 10, 8, nullptr, nullptr));
      const Options options = options_with(
          SHARDREC_OPTIONS_OPTIMIZER,
          {{SHARDREC_OPTION_OPTIMIZER, optimizer}, {SHARDREC_OPTION_ROW_STATISTICS, statistics}});
      ASSERT_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
      Topology topology;
      ASSERT_OK(shardrec_topology_create(1, 1, nullptr, topology.out()));
      Plan plan;
      ASSERT_OK(shardrec_plan_create_empty(model, topology, nullptr, plan.out()));
      ASSERT_OK(add_box(plan, 0, 0, 0, 500, 0, 40));
      ASSERT_OK(add_box(plan, 0, 0, 0, 500, 40, 24));
      ASSERT_OK(add_box(plan, 0, 0, 500, 443, 0, 64));
      ASSERT_OK(shardrec_plan_replicate(plan, 1, SHARDREC_REPLICATION_SAMPLES));
      int64_t expected = 0;
      for (const auto& [table, boxes] : {std::pair{0, 3}, std::pair{1, 1}}) {
        for (int32_t box = 0; box < boxes; ++box) {
          shardrec_box out{};
          ASSERT_OK(read_box(plan, table, box, &out));
          expected += out.weight_bytes + out.state_bytes;
        }
      }
      Local group;
      ASSERT_OK(shardrec_local_create(1, 1, nullptr, group.out()));
      Comm comm;
      ASSERT_OK(shardrec_comm_create_local(group, 0, nullptr, comm.out()));
      shardrec_collection* tables = nullptr;
      ASSERT_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables));
      double taken = 0;
      EXPECT_OK(shardrec_collection_stat(tables, SHARDREC_STAT_BYTES_TABLES, SHARDREC_ALL_TABLES,
                                         &taken));
      shardrec_collection_destroy(&tables);
      EXPECT_EQ(taken, static_cast<double>(expected));
    }
  }
}

TEST(Plan, BytesAreOfBoxesThatThereAre) {
  const Model model = some_model();
  Topology topology;
  ASSERT_OK(shardrec_topology_create(2, 2, nullptr, topology.out()));
  Plan plan;
  ASSERT_OK(shardrec_plan_create_empty(model, topology, nullptr, plan.out()));
  ASSERT_OK(shardrec_plan_replicate(plan, 1, SHARDREC_REPLICATION_SAMPLES));
  shardrec_box out{.weight_bytes = -1, .state_bytes = -1};
  EXPECT_EQ(read_box(plan, 0, 0, &out), SHARDREC_NOT_FOUND);
  EXPECT_EQ(read_box(plan, 1, 1, &out), SHARDREC_NOT_FOUND);
  EXPECT_EQ(read_box(plan, 2, 0, &out), SHARDREC_NOT_FOUND);
  EXPECT_EQ(out.weight_bytes, -1);
  EXPECT_EQ(out.state_bytes, -1);
  // The copy of each rank.
  ASSERT_OK(read_box(plan, 1, 0, &out));
  EXPECT_EQ(out.rank, -1);
  EXPECT_EQ(out.row, 0);
  EXPECT_EQ(out.rows, int64_t{1} << 40);
  EXPECT_EQ(out.col, 0);
  EXPECT_EQ(out.cols, 8);
  EXPECT_EQ(out.weight_bytes, (int64_t{1} << 40) * 8 * 4);
  EXPECT_EQ(out.state_bytes, (int64_t{1} << 40) * 4);
}

// A box that was read is added as it is; what it says of bytes is not read.
TEST(Plan, TakesBoxesOfAnotherPlan) {
  const Model model = some_model();
  Topology topology;
  ASSERT_OK(shardrec_topology_create(2, 2, nullptr, topology.out()));
  Plan plan, copy;
  ASSERT_OK(shardrec_plan_create_empty(model, topology, nullptr, plan.out()));
  ASSERT_OK(shardrec_plan_create_empty(model, topology, nullptr, copy.out()));
  ASSERT_OK(add_box(plan, 0, 1, 0, 943, 0, 64));
  shardrec_box box{};
  ASSERT_OK(read_box(plan, 0, 0, &box));
  EXPECT_EQ(box.weight_bytes, 943 * 64 * 4);
  box.state_bytes = INT64_MIN;
  ASSERT_OK(shardrec_plan_add_box(copy, 0, &box));
  ASSERT_OK(read_box(copy, 0, 0, &box));
  EXPECT_EQ(box.state_bytes, 943 * 4);
}

// They are copies: of a mesh the plan is the sharding group's, and what is changed or destroyed later changes nothing.
TEST(Collection, GivesItsModelAndItsPlan) {
  run_ranks(4, [](shardrec_comm* comm, int) {
    Owned<shardrec_mesh, shardrec_mesh_destroy> mesh;
    ASSERT_OK(shardrec_mesh_create(comm, 2, nullptr, mesh.out()));
    Model model;
    ASSERT_OK(shardrec_model_create(nullptr, model.out()));
    ASSERT_OK(shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr));
    ASSERT_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    const Options row_wise =
        options_with(SHARDREC_OPTIONS_PLAN, {{SHARDREC_OPTION_SHARDING, "row_wise"}});
    Plan plan;
    ASSERT_OK(shardrec_plan_collective(comm, mesh, model, row_wise, plan.out()));
    const std::string model_json = json_of(model), plan_json = json_of(plan);
    Owned<shardrec_collection, shardrec_collection_destroy> tables;
    ASSERT_OK(shardrec_collection_create(comm, mesh, model, plan, nullptr, tables.out()));
    ASSERT_OK(shardrec_model_add_table(model, "later", 10, 4, nullptr, nullptr));
    shardrec_plan_destroy(plan.out());
    Model own;
    Plan boxes;
    ASSERT_OK(shardrec_collection_model(tables, own.out()));
    ASSERT_OK(shardrec_collection_plan(tables, boxes.out()));
    EXPECT_EQ(json_of(own), model_json);
    EXPECT_EQ(json_of(boxes), plan_json);
    EXPECT_EQ(boxes_of(boxes, 0).size(), 2U);
    EXPECT_EQ(shardrec_collection_model(tables, nullptr), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(shardrec_collection_plan(tables, nullptr), SHARDREC_INVALID_ARGUMENT);
    shardrec_collection* closed = tables;
    shardrec_collection_destroy(tables.out());
    shardrec_model* none = nullptr;
    EXPECT_EQ(shardrec_collection_model(closed, &none), SHARDREC_CLOSED);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(json_of(own), model_json);
  });
}

TEST(Control, CountsNothingBeforeTheWork) {
  Control control;
  ASSERT_OK(shardrec_control_create(nullptr, control.out()));
  int64_t done = -1;
  int64_t total = -1;
  EXPECT_OK(shardrec_control_progress(control, &done, &total));
  EXPECT_EQ(done, 0);
  EXPECT_EQ(total, 0);
  EXPECT_OK(shardrec_control_progress(control, nullptr, nullptr));
  EXPECT_OK(shardrec_control_cancel(control));
}

TEST(Library, HashesAsXxh3) {
  // Values of the reference implementation, xxhash 0.8.
  EXPECT_EQ(shardrec_hash64(0, nullptr, 0), UINT64_C(0x2d06800538d394c2));
  EXPECT_EQ(shardrec_hash64(0, "ignored", 0), UINT64_C(0x2d06800538d394c2));
  EXPECT_EQ(shardrec_hash64(0, "ignored", -1), UINT64_C(0x2d06800538d394c2));
  EXPECT_EQ(shardrec_hash64(0, nullptr, 8), UINT64_C(0x2d06800538d394c2));
  EXPECT_EQ(shardrec_hash64(0, "68fd1e64", 8), UINT64_C(0x00b0431058060b4d));
  EXPECT_EQ(shardrec_hash64(1, "68fd1e64 and more", 8), UINT64_C(0x5705b9eaec3433a1));
  std::vector<char> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  EXPECT_EQ(shardrec_hash64(12345, bytes.data(), 1000), UINT64_C(0x5688215cdb93071d));
}

TEST(Hash, OfIdsIsThatOfTheirEightBytesModuloRows) {
  const std::vector<int64_t> ids = {0, 1, -1, 943, INT64_MAX, INT64_MIN, int64_t{1} << 40};
  const std::vector<int32_t> narrow = {0, 1, -1, 943, INT32_MAX, INT32_MIN, 7};
  const auto expected = [](uint64_t seed, int64_t id, uint64_t rows) {
    const uint64_t hash = shardrec_hash64(seed, &id, 8);
    return rows == 0 ? hash : hash % rows;
  };
  for (const int64_t rows : {int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{1} << 40}) {
    std::vector<int64_t> out(ids.size()), of_narrow(narrow.size()), in_place = ids;
    shardrec::hash64_ids(5, ids, rows, out);
    shardrec::hash64_ids(5, narrow, rows, of_narrow);
    shardrec::hash64_ids(5, in_place, rows, in_place);
    EXPECT_EQ(in_place, out);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(static_cast<uint64_t>(out[i]), expected(5, ids[i], static_cast<uint64_t>(rows)));
      EXPECT_EQ(static_cast<uint64_t>(of_narrow[i]),
                expected(5, narrow[i], static_cast<uint64_t>(rows)));
    }
  }
  std::vector<int32_t> rows_of_32(ids.size());
  shardrec::hash64_ids(0, ids, int64_t{1} << 31, rows_of_32);
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(static_cast<uint64_t>(rows_of_32[i]), expected(0, ids[i], uint64_t{1} << 31));
  }
  const auto refused = [&](int64_t rows, const shardrec::Vector& from, const shardrec::Vector& to) {
    return shardrec_hash64_ids(0, from.get(), rows, to.get());
  };
  std::vector<int64_t> out(ids.size());
  EXPECT_EQ(refused(-1, ids, out), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(refused(0, ids, rows_of_32), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(refused((int64_t{1} << 31) + 1, ids, rows_of_32), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(refused(9, ids, shardrec::Vector(out.data(), 3)), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(refused(9, nullptr, out), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(refused(9, ids, nullptr), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(refused(9, std::vector<float>{1}, out), SHARDREC_INVALID_ARGUMENT);
}

TEST(Library, TellsItsVersionAndCapabilities) {
  EXPECT_EQ(shardrec_api_version(), SHARDREC_API_VERSION);
  char* text = nullptr;
  ASSERT_OK(shardrec_capabilities_json(&text));
  const std::string json = take(text);
  for (const char* part : {"\"version\": 1", "\"library_version\": \"0.2.0\"", "\"api_version\": 2",
                           "\"engines\": [\"local\"", "\"devices\": [\"cpu\"",
                           "\"cuda_devices\": [", "\"cuda_missing\": ",
                           "\"cpu_targets\": [\"scalar\"", "\"cpu_target\": \"", "\"dense\": "}) {
    EXPECT_TRUE(contains(json, part)) << part << " is not in " << json;
  }
}

TEST(Tensors, AreFilledAsCompactViews) {
  float data[6] = {};
  shardrec_tensor tensor{};
  ASSERT_OK(shardrec_tensor_matrix(data, SHARDREC_FLOAT32, 2, 3, &tensor));
  EXPECT_EQ(tensor.data, data);
  EXPECT_EQ(tensor.device_type, SHARDREC_DEVICE_CPU);
  EXPECT_EQ(tensor.device_id, 0);
  EXPECT_EQ(tensor.dtype, SHARDREC_FLOAT32);
  EXPECT_EQ(tensor.ndim, 2);
  EXPECT_EQ(tensor.shape[0], 2);
  EXPECT_EQ(tensor.shape[1], 3);
  EXPECT_EQ(tensor.stride[0], 3);
  EXPECT_EQ(tensor.stride[1], 1);
  ASSERT_OK(shardrec_tensor_vector(nullptr, SHARDREC_INT64, 0, &tensor));
  EXPECT_EQ(tensor.ndim, 1);
  EXPECT_EQ(tensor.shape[0], 0);
}

}  // namespace
}  // namespace shardrec::test
