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
  EXPECT_OK(shardrec_model_set_optimizer(model, optimizer));
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
  int32_t count = 0;
  EXPECT_OK(shardrec_model_table_count(model, &count));
  EXPECT_EQ(count, 2);
  EXPECT_OK(shardrec_model_feature_count(model, &count));
  EXPECT_EQ(count, 3);
  const std::vector<std::pair<int64_t, int64_t>> expected = {{64, 8}, {0, 64}, {72, 8}};
  for (int32_t feature = 0; feature < 3; ++feature) {
    int64_t column = -1;
    int64_t columns = -1;
    int64_t width = -1;
    EXPECT_OK(shardrec_model_feature_columns(model, feature, &column, &columns, &width));
    EXPECT_EQ(column, expected[static_cast<size_t>(feature)].first);
    EXPECT_EQ(columns, expected[static_cast<size_t>(feature)].second);
    EXPECT_EQ(width, 80);
  }
  EXPECT_OK(shardrec_model_feature_columns(model, 0, nullptr, nullptr, nullptr));
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
      ASSERT_OK(shardrec_model_set_optimizer(model, options));
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
          int64_t weights = 0;
          int64_t states = 0;
          ASSERT_OK(shardrec_plan_box_bytes(plan, table, box, &weights, &states));
          expected += weights + states;
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
  int64_t weights = -1;
  int64_t states = -1;
  EXPECT_EQ(shardrec_plan_box_bytes(plan, 0, 0, &weights, &states), SHARDREC_NOT_FOUND);
  EXPECT_EQ(shardrec_plan_box_bytes(plan, 1, 1, &weights, &states), SHARDREC_NOT_FOUND);
  EXPECT_EQ(shardrec_plan_box_bytes(plan, 2, 0, &weights, &states), SHARDREC_NOT_FOUND);
  EXPECT_EQ(weights, -1);
  EXPECT_EQ(states, -1);
  EXPECT_OK(shardrec_plan_box_bytes(plan, 1, 0, nullptr, nullptr));
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
