#include "plan/model/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "plan/model/names.h"
#include "plan/plan_test_util.h"

namespace shardrec::plan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Model small() {
  Model model = tables_of({{10, 4}, {20, 8}});
  add_feature(model, {.name = "b0", .table = 1});
  add_feature(model, {.name = "a0", .table = 0, .pooling = SHARDREC_POOLING_MEAN});
  add_feature(model, {.name = "b1", .table = 1});
  return model;
}

TEST(AddTable, RefusesWhatIsOutOfRangeAndLeavesTheModelAlone) {
  Model model = small();
  const Model before = model;
  const std::vector<Table> bad = {
      {.name = "", .rows = 1, .dim = 1},
      {.name = "t0", .rows = 1, .dim = 1},
      {.name = std::string("a\0b", 3), .rows = 1, .dim = 1},
      {.name = "a\nb", .rows = 1, .dim = 1},
      {.name = "\x7f", .rows = 1, .dim = 1},
      {.name = "\xff", .rows = 1, .dim = 1},
      {.name = "\xc0\x80", .rows = 1, .dim = 1},      // overlong
      {.name = "\xed\xa0\x80", .rows = 1, .dim = 1},  // surrogate
      {.name = "\xf4\x90\x80\x80", .rows = 1, .dim = 1},
      {.name = "\xe2\x82", .rows = 1, .dim = 1},
      {.name = "x", .rows = 0, .dim = 1},
      {.name = "x", .rows = -1, .dim = 1},
      {.name = "x", .rows = (int64_t{1} << 40) + 1, .dim = 1},
      {.name = "x", .rows = INT64_MAX, .dim = 1},
      {.name = "x", .rows = 1, .dim = 0},
      {.name = "x", .rows = 1, .dim = 65537},
      {.name = "x", .rows = 1, .dim = INT64_MIN},
      {.name = "x", .rows = 1, .dim = 1, .dtype = SHARDREC_INT64},
      {.name = "x", .rows = 1, .dim = 1, .dtype = static_cast<shardrec_dtype>(0)},
      {.name = "x", .rows = 1, .dim = 1, .init = static_cast<shardrec_init>(7)},
      {.name = "x", .rows = 1, .dim = 1, .init_min = kNan},
      {.name = "x", .rows = 1, .dim = 1, .init_max = kInfinity},
      {.name = "x", .rows = 1, .dim = 1, .init_min = 2.0},  // above the default maximum of 1
      {.name = "x", .rows = 1, .dim = 1, .init_min = 0.5, .init_max = 0.25},
      {.name = "x", .rows = 1, .dim = 1, .rounding = SHARDREC_ROUNDING_STOCHASTIC},
      {.name = "x",
       .rows = 1,
       .dim = 1,
       .dtype = SHARDREC_FLOAT16,
       .rounding = static_cast<shardrec_rounding>(2)},
      {.name = "x", .rows = 1, .dim = 1, .optimizer = Optimizer{.eta = kNan}},
  };
  for (const Table& table : bad) {
    EXPECT_EQ(status_of([&] { add_table(model, table); }), SHARDREC_INVALID_ARGUMENT) << table.name;
  }
  EXPECT_EQ(status_of([&] {
              add_table(model, {.name = "x", .rows = 1, .dim = 1, .dtype = SHARDREC_FLOAT64});
            }),
            SHARDREC_UNSUPPORTED);
  EXPECT_EQ(model, before);
  for (const auto dtype : {SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    const std::string name = name_of(dtype);
    add_table(model, {.name = name, .rows = 1, .dim = 1, .dtype = dtype});
    EXPECT_EQ(model.tables.back().dtype, dtype);
  }
}

TEST(AddTable, AcceptsTheLimitsAndAnyLanguage) {
  Model model;
  EXPECT_EQ(add_table(model, {.name = "tall", .rows = int64_t{1} << 40, .dim = 1}), 0);
  EXPECT_EQ(add_table(model, {.name = "wide", .rows = 1, .dim = 65536}), 1);
  EXPECT_EQ(add_table(model, {.name = "\xe8\xa1\xa8 \xf0\x9f\x98\x80", .rows = 1, .dim = 1}), 2);
  EXPECT_EQ(add_table(model, {.name = "x", .rows = 1, .dim = 1, .init_min = 0.0, .init_max = 0.0}),
            3);
}

TEST(AddTable, KeepsTheSumOfAllBytesFromOverflowing) {
  Model model;
  const auto add = [&](int i) {
    add_table(model, {.name = std::to_string(i), .rows = int64_t{1} << 40, .dim = 65536});
  };
  for (int i = 0; i < 4; ++i) add(i);
  EXPECT_EQ(status_of([&] { add(4); }), SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(model.tables.size(), 4U);
}

TEST(OutputLayout, SequencesHaveOutputsOfTheirOwn) {
  Model model = small();
  const OutputLayout before = output_layout(model);
  add_feature(model, {.name = "s0", .table = 1, .pooling = SHARDREC_POOLING_NONE});
  add_feature(model, {.name = "p", .table = 0});
  add_feature(model, {.name = "s1", .table = 0, .pooling = SHARDREC_POOLING_NONE});
  const OutputLayout layout = output_layout(model);
  EXPECT_EQ(layout.width, before.width + model.tables[0].dim);
  EXPECT_EQ(layout.sequences, (std::vector<int32_t>{3, 5}));
  EXPECT_EQ(layout.output, (std::vector<int32_t>{0, 0, 0, 1, 0, 2}));
  EXPECT_EQ(layout.outputs(), 3);
}

TEST(AddFeature, RefusesUnknownTablesPoolingsAndNamesThatAreTaken) {
  Model model = small();
  const Model before = model;
  for (const Feature& feature :
       {Feature{"x", -1}, Feature{"x", 2}, Feature{"", 0}, Feature{"a0", 0}, Feature{"\x01", 0},
        Feature{"x", 0, static_cast<shardrec_pooling>(3)}}) {
    EXPECT_EQ(status_of([&] { add_feature(model, feature); }), SHARDREC_INVALID_ARGUMENT);
  }
  EXPECT_EQ(model, before);
  add_feature(model, {"t0", 0});  // features and tables have names of their own
}

TEST(SetOptimizer, TakesTheWeightDecayThatItsFormulaHas) {
  const auto none = SHARDREC_WEIGHT_DECAY_NONE;
  const auto l2 = SHARDREC_WEIGHT_DECAY_L2;
  const auto decouple = SHARDREC_WEIGHT_DECAY_DECOUPLE;
  const std::map<shardrec_optimizer, std::set<shardrec_weight_decay>> accepted = {
      {SHARDREC_OPTIMIZER_SGD, {none, l2, decouple}},
      {SHARDREC_OPTIMIZER_ADAGRAD, {none, l2, decouple}},
      {SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, {none, l2, decouple}},
      {SHARDREC_OPTIMIZER_ADAM, {none, decouple}},
      {SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM, {none, decouple}},
      {SHARDREC_OPTIMIZER_LAMB, {none, decouple}},
      {SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB, {none, decouple}},
      {SHARDREC_OPTIMIZER_LARS_SGD, {none, l2}},
  };
  Model model;
  for (const auto& [kind, modes] : accepted) {
    for (const auto mode : {none, l2, decouple}) {
      const Model before = model;
      const Optimizer optimizer{.kind = kind, .weight_decay_mode = mode};
      std::string sentence;
      const shardrec_status status = status_of([&] { set_optimizer(model, optimizer); }, &sentence);
      if (modes.contains(mode)) {
        EXPECT_EQ(model.optimizer, optimizer);
        continue;
      }
      EXPECT_EQ(status, SHARDREC_UNSUPPORTED) << name_of(kind) << " " << name_of(mode);
      EXPECT_NE(sentence.find("it takes none and "), std::string::npos) << sentence;
      EXPECT_EQ(model, before);
    }
  }
}

TEST(SetOptimizer, RefusesWhatOnlyLayersHave) {
  Model model = small();
  const Model before = model;
  const Optimizer momentum{.kind = SHARDREC_OPTIMIZER_MOMENTUM_SGD};
  Table table{.name = "new", .rows = 1, .dim = 1};
  table.optimizer = momentum;
  std::string sentence;
  EXPECT_EQ(status_of([&] { set_optimizer(model, momentum); }, &sentence), SHARDREC_UNSUPPORTED);
  EXPECT_EQ(sentence,
            "tables have no optimizer momentum_sgd, which is for layers and DDP parameters; "
            "accepted: sgd, adagrad, rowwise_adagrad, adam, partial_rowwise_adam, lamb, "
            "partial_rowwise_lamb, lars_sgd");
  EXPECT_EQ(status_of([&] { set_table_optimizer(model, 0, momentum); }), SHARDREC_UNSUPPORTED);
  EXPECT_EQ(status_of([&] { add_table(model, table); }), SHARDREC_UNSUPPORTED);
  EXPECT_EQ(model, before);
  EXPECT_EQ(optimizer_from_json(optimizer_to_json(momentum)), momentum) << "as of layers in files";
}

TEST(SetTableOptimizer, StandsInPlaceOfTheModels) {
  Model model;
  add_table(model, {.name = "a", .rows = 1, .dim = 1});
  add_table(model, {.name = "b", .rows = 1, .dim = 1});
  const Optimizer adam{.kind = SHARDREC_OPTIMIZER_ADAM, .learning_rate = 0.5};
  set_table_optimizer(model, 1, adam);
  set_optimizer(model, {.kind = SHARDREC_OPTIMIZER_LAMB});
  EXPECT_EQ(model.optimizer_of(0).kind, SHARDREC_OPTIMIZER_LAMB);
  EXPECT_EQ(model.optimizer_of(1), adam);
  const uint64_t before = model_fingerprint(model);
  for (const int32_t table : {-1, 2}) {
    EXPECT_EQ(status_of([&] { set_table_optimizer(model, table, adam); }), SHARDREC_NOT_FOUND);
  }
  EXPECT_EQ(status_of([&] { set_table_optimizer(model, 0, Optimizer{.eta = -1}); }),
            SHARDREC_INVALID_ARGUMENT);
  EXPECT_EQ(model_fingerprint(model), before);
  set_table_optimizer(model, 1, std::nullopt);
  EXPECT_EQ(model.optimizer_of(1).kind, SHARDREC_OPTIMIZER_LAMB);
  EXPECT_NE(model_fingerprint(model), before);
}

TEST(SetOptimizer, RefusesNumbersOutOfRangeAndLeavesTheModelAlone) {
  Model model;
  set_optimizer(model, {.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, .learning_rate = 0});
  const Model before = model;
  std::vector<Optimizer> bad(21);
  bad[0].kind = static_cast<shardrec_optimizer>(0);
  bad[1].learning_rate = -0.1;
  bad[2].learning_rate = kNan;
  bad[3].eps = -1;
  bad[4].eps = kInfinity;
  bad[5].weight_decay = -1e-300;
  bad[6].max_gradient = kNan;
  bad[7].beta1 = 1;
  bad[8].beta2 = 1.5;
  bad[9].beta1 = -0.5;
  bad[10].weight_decay_mode = static_cast<shardrec_weight_decay>(3);
  bad[11].row_statistics = static_cast<shardrec_row_statistics>(2);
  bad[12].learning_rate = kInfinity;
  bad[13].weight_decay = kNan;
  bad[14].max_gradient = -1;
  bad[15].momentum = 1;
  bad[16].eta = kInfinity;
  bad[17].max_norm = -1;
  bad[18].kind = static_cast<shardrec_optimizer>(10);
  bad[19].momentum_scale = 0.5;
  bad[20].momentum_scale = kNan;
  for (size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(status_of([&] { set_optimizer(model, bad[i]); }), SHARDREC_INVALID_ARGUMENT) << i;
  }
  EXPECT_EQ(model, before);
}

TEST(SetOptimizer, TakesAMomentumScaleForRowwiseAdagradOnly) {
  Model model;
  set_optimizer(model, {.kind = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD, .momentum_scale = 65536});
  EXPECT_EQ(model.optimizer.momentum_scale, 65536);
  const Model before = model;
  EXPECT_EQ(status_of([&] {
              set_optimizer(model, {.kind = SHARDREC_OPTIMIZER_ADAGRAD, .momentum_scale = 2});
            }),
            SHARDREC_UNSUPPORTED);
  EXPECT_EQ(model, before);
}

TEST(OutputLayout, PutsFeaturesTableByTableInTheOrderTheyWereAdded) {
  // a0 of t0 (4 columns) comes first, then b0 and b1 of t1 (8 each).
  const OutputLayout layout = output_layout(small());
  EXPECT_EQ(layout.column, (std::vector<int64_t>{4, 0, 12}));
  EXPECT_EQ(layout.width, 20);
  EXPECT_EQ(output_layout(Model{}).width, 0);
}

TEST(Names, ReadBackAsTheSameValue) {
  EXPECT_EQ(value_of<shardrec_sharding>("table_row_wise"), SHARDREC_SHARDING_TABLE_ROW_WISE);
  EXPECT_EQ(value_of<shardrec_optimizer>("rowwise_adagrad"), SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD);
  EXPECT_EQ(value_of<shardrec_dtype>("float32"), SHARDREC_FLOAT32);
  EXPECT_EQ(value_of<shardrec_pooling>("SUM"), std::nullopt);
  EXPECT_STREQ(name_of(static_cast<shardrec_sharding>(99)), "unknown");
  EXPECT_EQ(names_of<shardrec_init>(), "uniform, zeros");
}

}  // namespace
}  // namespace shardrec::plan
