#include "core/json.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>

#include "plan/plan.h"
#include "plan/plan_test_util.h"

namespace shardrec::plan {
namespace {

Model rich() {
  Model model;
  add_table(model, {.name = "user \"\\ \xe8\xa1\xa8", .rows = 943, .dim = 64});
  add_table(model, {.name = "item",
                    .rows = int64_t{1} << 40,
                    .dim = 3,
                    .init = SHARDREC_INIT_ZEROS,
                    .init_min = -0.1,
                    .init_max = 1.0 / 3,
                    .out_of_range = SHARDREC_OUT_OF_RANGE_DROP,
                    .optimizer = Optimizer{.kind = SHARDREC_OPTIMIZER_LARS_SGD,
                                           .weight_decay_mode = SHARDREC_WEIGHT_DECAY_L2,
                                           .momentum = 0.1,
                                           .eta = 1e-200}});
  add_table(model, {.name = "small",
                    .rows = 7,
                    .dim = 2,
                    .dtype = SHARDREC_BFLOAT16,
                    .rounding = SHARDREC_ROUNDING_STOCHASTIC});
  add_feature(model, {.name = "f", .table = 1, .pooling = SHARDREC_POOLING_MEAN});
  add_feature(model, {.name = "g", .table = 0});
  add_feature(model, {.name = "h", .table = 1, .pooling = SHARDREC_POOLING_NONE});
  set_optimizer(model, {.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD,
                        .learning_rate = 0.1,
                        .eps = 5e-324,
                        .weight_decay = 1e300,
                        .weight_decay_mode = SHARDREC_WEIGHT_DECAY_L2,
                        .max_gradient = 0.30000000000000004,
                        .beta1 = 0.5,
                        .beta2 = 0.25,
                        .momentum = 0.125,
                        .eta = 2,
                        .max_norm = 3,
                        .momentum_scale = 1.5,
                        .row_statistics = SHARDREC_ROW_STATISTICS_SHARD});
  return model;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string complaint(const std::string& json) {
  std::string sentence;
  EXPECT_EQ(status_of([&] { model_from_json(json); }, &sentence), SHARDREC_INVALID_ARGUMENT)
      << json;
  return sentence;
}

TEST(ModelJson, ReadsBackAsTheSameModel) {
  EXPECT_EQ(model_from_json(model_to_json(rich())), rich());
  EXPECT_EQ(model_from_json(model_to_json(Model{})), Model{});
}

TEST(ModelJson, OfALaterVersionIsRefusedAsSuch) {
  const std::string text = complaint(R"({"format": "shardrec-model-2", "tables": []})");
  EXPECT_NE(text.find("\"shardrec-model-2\" is of a later release; this one reads "
                      "\"shardrec-model-1\""),
            std::string::npos)
      << text;
  for (const char* other : {"shardrec-model-0", "shardrec-model-2x", "shardrec-model-", "x"}) {
    const std::string none =
        complaint(R"({"tables": [], "format": ")" + std::string(other) + "\"}");
    EXPECT_NE(none.find("the format is not"), std::string::npos) << none;
  }
}

TEST(ModelJson, TakesDefaultsForWhatIsNotSaid) {
  const Model model = model_from_json(
      R"({"format": "shardrec-model-1", "tables": [{"name": "t", "rows": 5, "dim": 2}]})");
  EXPECT_EQ(model.optimizer, Optimizer{});
  EXPECT_EQ(model.tables.at(0), (Table{.name = "t", .rows = 5, .dim = 2}));
}

TEST(ModelJson, SaysWhereItIsWrong) {
  const std::string good = model_to_json(rich());
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(complaint(replaced(good, "\"rows\": 943", "\"rows\": 943.0")), "tables[0].rows: ");
  has(complaint(replaced(good, "\"rows\": 943", "\"rows\": 9e2")), "tables[0].rows: ");
  has(complaint(replaced(good, "\"rows\": 943", "\"rows\": 0")), "tables[0].rows: 0 is not in");
  has(complaint(replaced(good, "\"rows\": 943", "\"rows\": -1")), "tables[0].rows: -1 is not in");
  has(complaint(replaced(good, "\"rows\": 943", "\"rows\": \"943\"")), "tables[0].rows: ");
  has(complaint(replaced(good, "\"rows\": 943", "\"rows\": 18446744073709551615")),
      "tables[0].rows: an integer is expected, not an integer above");
  has(complaint(replaced(good, "\"rows\": 943", "\"rows\": 99999999999999999999999")),
      "tables[0].rows: ");
  has(complaint(replaced(good, "\"rows\": 943", "\"rows\": 1, \"rows\": 2")),
      "tables[0]: the key \"rows\" stands twice");
  has(complaint(replaced(good, "\"rows\": 943", "\"lines\": 943")), "tables[0].lines: ");
  has(complaint(replaced(good, "\"rows\": 943, ", "")), "tables[0]: the key \"rows\" is missing");
  has(complaint(replaced(good, "\"name\": \"item\"", "\"name\": \"\"")), "tables[1]: ");
  has(complaint(replaced(good, "\"pooling\": \"mean\"", "\"pooling\": \"max\"")),
      "features[0].pooling: \"max\" is unknown; accepted: sum, mean");
  has(complaint(replaced(good, "\"table\": \"item\"", "\"table\": \"none\"")),
      "features[0].table: ");
  has(complaint(replaced(good, "\"learning_rate\": 0.1", "\"learning_rate\": -1")), "optimizer: ");
  has(complaint(replaced(good, "\"learning_rate\": 0.1", "\"learning_rate\": true")),
      "optimizer.learning_rate: ");
  has(complaint(replaced(good, "\"learning_rate\": 0.1", "\"learning_rate\": 1e999")),
      "out of range");
  has(complaint(replaced(good, "shardrec-model-1", "shardrec-model-2")), "format: ");
  has(complaint(replaced(good, "[\n{", "{")), "no valid JSON");
  EXPECT_EQ(status_of([&] { model_from_json(replaced(good, "float32", "float64")); }),
            SHARDREC_UNSUPPORTED);
  has(complaint(replaced(good, "\"rounding\": \"stochastic\"", "\"rounding\": \"up\"")),
      "tables[2].rounding: \"up\" is unknown; accepted: nearest, stochastic");
  has(complaint(replaced(good, "\"eta\": 1e-200", "\"eta\": -1")), "tables[1]: ");
  has(complaint(replaced(good, "\"momentum\": 0.1,", "\"momentum\": \"x\",")),
      "tables[1].optimizer.momentum: ");
}

TEST(ModelJson, RefusesWhatIsNoJsonWithoutCrashing) {
  for (const std::string& text :
       {std::string(), std::string(" "), std::string("nul"), std::string("\0", 1),
        std::string("{}x"), std::string("[1,]"), std::string("{\"a\":}"), std::string("'a'"),
        std::string("\"\xff\""), std::string("\"\\ud800\""), std::string("// c\n{}"),
        std::string("NaN"), std::string("01"), std::string("1."), std::string("null"),
        std::string("3"), std::string(1000000, '['), std::string(40, '[') + std::string(40, ']'),
        "{\"format\": " + std::string(400000, '9') + "}"}) {
    complaint(text);
  }
}

TEST(ModelJson, SurvivesEveryTruncationAndRandomBytes) {
  const std::string good = model_to_json(rich());
  for (size_t size = 0; size < good.size(); ++size) complaint(good.substr(0, size));
  std::mt19937 random(5);
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (int hits = 1 + static_cast<int>(random() % 3); hits > 0; --hits) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    try {
      const Model model = model_from_json(text);
      EXPECT_EQ(model_from_json(model_to_json(model)), model);
    } catch (const core::Error& error) {
      EXPECT_TRUE(error.status() == SHARDREC_INVALID_ARGUMENT ||
                  error.status() == SHARDREC_UNSUPPORTED);
    }
  }
}

TEST(ModelJson, DoesNotDependOnTheLocale) {
  const std::string expected = model_to_json(rich());
  bool found = false;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"}) {
    if (std::setlocale(LC_ALL, name) != nullptr) {
      found = true;
      break;
    }
  }
  const std::string text = model_to_json(rich());
  const Model model = model_from_json(expected);
  std::setlocale(LC_ALL, "C");
  EXPECT_EQ(text, expected);
  EXPECT_EQ(model, rich());
  if (!found) GTEST_SKIP() << "no locale with a decimal comma is installed";
}

TEST(ModelFingerprint, DiffersWhenAnythingDiffers) {
  std::set<uint64_t> seen;
  const auto add = [&](auto change) {
    Model model = rich();
    change(model);
    EXPECT_TRUE(seen.insert(model_fingerprint(model)).second);
  };
  EXPECT_EQ(model_fingerprint(rich()), model_fingerprint(rich()));
  add([](Model&) {});
  add([](Model& m) { m.tables[0].name = "u"; });
  add([](Model& m) { m.tables[0].rows += 1; });
  add([](Model& m) { m.tables[0].dim += 1; });
  add([](Model& m) { m.tables[0].init = SHARDREC_INIT_ZEROS; });
  add([](Model& m) { m.tables[1].init_min.reset(); });
  add([](Model& m) { m.tables[1].init_max = 1; });
  add([](Model& m) { m.tables[1].out_of_range = SHARDREC_OUT_OF_RANGE_CLAMP; });
  add([](Model& m) { std::swap(m.features[0], m.features[1]); });
  add([](Model& m) { m.features[0].name = "x"; });
  add([](Model& m) { m.features[0].table = 0; });
  add([](Model& m) { m.features[0].pooling = SHARDREC_POOLING_SUM; });
  add([](Model& m) { m.features.pop_back(); });
  add([](Model& m) { m.optimizer.kind = SHARDREC_OPTIMIZER_SGD; });
  add([](Model& m) { m.optimizer.learning_rate = 0.2; });
  add([](Model& m) { m.optimizer.eps = 1e-8; });
  add([](Model& m) { m.optimizer.weight_decay = 0; });
  add([](Model& m) { m.optimizer.weight_decay_mode = SHARDREC_WEIGHT_DECAY_NONE; });
  add([](Model& m) { m.optimizer.max_gradient = 0; });
  add([](Model& m) { m.optimizer.beta1 = 0; });
  add([](Model& m) { m.optimizer.beta2 = 0; });
  add([](Model& m) { m.optimizer.row_statistics = SHARDREC_ROW_STATISTICS_ROW; });
  add([](Model& m) { m.optimizer.momentum = 0; });
  add([](Model& m) { m.optimizer.eta = 0; });
  add([](Model& m) { m.optimizer.max_norm = 0; });
  add([](Model& m) { m.optimizer.momentum_scale = 1; });
  add([](Model& m) { m.tables[1].optimizer.reset(); });
  add([](Model& m) { m.tables[0].optimizer = m.optimizer; });
  add([](Model& m) { m.tables[1].optimizer->momentum = 0; });
  add([](Model& m) { m.tables[2].dtype = SHARDREC_FLOAT16; });
  add([](Model& m) { m.tables[2].rounding = SHARDREC_ROUNDING_NEAREST; });
}

Model planned() { return tables_of({{9, 8}, {4, 12}, {3, 1}}); }

TEST(PlanJson, ReadsBackAsTheSamePlan) {
  const Model model = planned();
  for (int kind = SHARDREC_SHARDING_AUTO; kind <= SHARDREC_SHARDING_MIXED; ++kind) {
    const Plan plan = make_plan(model, {5, 2}, static_cast<shardrec_sharding>(kind));
    EXPECT_EQ(plan_from_json(model, plan_to_json(plan, model)), plan);
  }
}

TEST(PlanJson, MatchesTablesByNameAndSortsBoxes) {
  const Model model = planned();
  const Plan plan = plan_from_json(model, R"({"format": "shardrec-plan-1", "ranks": 4,
    "ranks_per_node": 2, "tables": [
     {"name": "t2", "rows": 3, "dim": 1, "replicated": true, "boxes": []},
     {"name": "t0", "rows": 9, "dim": 8, "replicated": false, "boxes": [
       {"rank": 3, "row": 5, "rows": 4, "col": 0, "cols": 8},
       {"rank": 1, "row": 0, "rows": 5, "col": 0, "cols": 8}]},
     {"name": "t1", "rows": 4, "dim": 12, "replicated": false, "boxes": [
       {"rank": 1, "row": 0, "rows": 4, "col": 0, "cols": 12}]}]})");
  EXPECT_EQ(plan.topology, (Topology{4, 2}));
  EXPECT_EQ(plan.tables[0].boxes, (std::vector<Box>{{1, {0, 5, 0, 8}}, {3, {5, 4, 0, 8}}}));
  EXPECT_EQ(plan.tables[1].boxes, (std::vector<Box>{{1, {0, 4, 0, 12}}}));
  EXPECT_TRUE(plan.tables[2].replicated);
}

TEST(PlanJson, SaysWhereItIsWrong) {
  const Model model = planned();
  const std::string good =
      plan_to_json(make_plan(model, {4, 2}, SHARDREC_SHARDING_ROW_WISE), model);
  const auto expect = [&](const std::string& from, const std::string& to, const std::string& part) {
    std::string sentence;
    EXPECT_EQ(status_of([&] { plan_from_json(model, replaced(good, from, to)); }, &sentence),
              SHARDREC_INVALID_ARGUMENT);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  expect("\"rank\": 1", "\"rank\": 4", "tables[0].boxes[1]: ");
  expect("\"rank\": 1", "\"rank\": -1", "tables[0].boxes[1].rank: ");
  expect("\"row\": 3", "\"row\": 2", "overlap");
  expect("\"row\": 3, \"rows\": 3", "\"row\": 3, \"rows\": 2", "no box owns row 5, column 0");
  expect("\"rows\": 9", "\"rows\": 10", "tables[0]: table \"t0\" has 9 rows");
  expect("\"name\": \"t1\"", "\"name\": \"t0\"",
         "tables[1].name: table \"t0\" stands in the plan twice");
  expect("\"name\": \"t1\"", "\"name\": \"zz\"", "the model has no table \"zz\"");
  expect("\"replicated\": false", "\"replicated\": true", "replicated and has boxes");
  expect("\"replicated\": false", "\"replicated\": 0", "tables[0].replicated: a boolean");
  expect("\"ranks\": 4", "\"ranks\": 0", "ranks: ");
  expect("\"ranks\": 4", "\"ranks\": 1", "ranks");
  expect("\"ranks_per_node\": 2", "\"ranks_per_node\": 5", "ranks");
  expect("\"boxes\"", "\"box\"", "tables[0].box: ");
}

TEST(PlanJson, SurvivesEveryTruncationAndRandomBytes) {
  const Model model = planned();
  const std::string good = plan_to_json(make_plan(model, {4, 2}, SHARDREC_SHARDING_MIXED), model);
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(status_of([&] { plan_from_json(model, good.substr(0, size)); }),
              SHARDREC_INVALID_ARGUMENT);
  }
  std::mt19937 random(5);
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    text[random() % text.size()] = static_cast<char>(random());
    try {
      check_tiling(plan_from_json(model, text), model);
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
    }
  }
}

TEST(PlanFingerprint, DiffersWhenAnythingDiffers) {
  const Model model = planned();
  std::set<uint64_t> seen;
  const auto add = [&](auto change) {
    Plan plan = make_plan(model, {4, 2}, SHARDREC_SHARDING_ROW_WISE);
    change(plan);
    EXPECT_TRUE(seen.insert(plan_fingerprint(plan, model)).second);
  };
  add([](Plan&) {});
  add([](Plan& p) { p.topology.ranks = 5; });
  add([](Plan& p) { p.topology.ranks_per_node = 1; });
  add([](Plan& p) { p.tables[0].boxes[0].rank = 3; });
  add([](Plan& p) { p.tables[0].boxes[0].cells.rows = 2; });
  add([](Plan& p) { p.tables[0].boxes[0].cells.cols = 2; });
  add([](Plan& p) { p.tables[0].boxes[1].cells.row = 2; });
  add([](Plan& p) { p.tables[0].boxes[1].cells.col = 2; });
  add([](Plan& p) { p.tables[1].boxes.pop_back(); });
  add([](Plan& p) { p.tables[2] = {true, {}}; });
}

TEST(Json, WritesNumbersThatReadBackAsTheSameBits) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    double value = 0;
    const uint64_t bits = random();
    static_assert(sizeof value == sizeof bits);
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    core::JsonWriter json;
    json.number(value);
    const core::JsonDocument document(json.str(), "number", SHARDREC_INVALID_ARGUMENT);
    const double back = document.root().number();
    EXPECT_EQ(std::memcmp(&back, &value, sizeof value), 0) << json.str();
  }
  for (const int64_t value : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    core::JsonWriter json;
    json.integer(value);
    const core::JsonDocument document(json.str(), "number", SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(document.root().integer(INT64_MIN, INT64_MAX), value);
  }
}

TEST(Json, EscapesWhatJsonCannotHoldInStrings) {
  std::string all;
  for (char c = 1; c > 0; ++c) {
    all += c;
    if (c == 127) break;
  }
  core::JsonWriter json;
  json.text(all);
  const core::JsonDocument document(json.str(), "text", SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(document.root().text(), all);
}

}  // namespace
}  // namespace shardrec::plan
