// What TorchRec and FBGEMM are known to get wrong, as cases with small numbers worked out by hand:
// they must come out right here.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

struct Table {
  int64_t rows;
  int64_t dim;
  shardrec_pooling pooling;
  std::vector<std::array<int64_t, 5>> boxes;  // rank, row, rows, col, cols; none: replicated
};

struct Case {
  std::vector<Table> tables;              // one feature each
  std::vector<std::vector<int64_t>> ids;  // by table, of rank 0's only sample; rank 1 has the same
  std::vector<float> weights = {};        // of all ids, by table
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_SGD;
  double learning_rate = 1;
  double weight_decay = 0;
  shardrec_weight_decay decay_mode = SHARDREC_WEIGHT_DECAY_NONE;
  float gradient = 1;
};

struct Result {
  std::vector<float> out;                  // rank 0's sample
  std::vector<std::vector<float>> before;  // tables
  std::vector<std::vector<float>> after;
  shardrec_status status = SHARDREC_OK;  // of forward
};

// Row r of every table starts as r + 1 in all columns. Two ranks, each with the same sample; one
// step.
Result run(const Case& given) {
  Result result;
  std::mutex mutex;
  run_ranks(2, 1, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    shardrec_model* model = nullptr;
    SR_OK(shardrec_model_create(nullptr, &model));
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER, given.optimizer));
    SR_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, given.learning_rate));
    SR_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_WEIGHT_DECAY, given.weight_decay));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_WEIGHT_DECAY_MODE, given.decay_mode));
    SR_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    for (size_t t = 0; t < given.tables.size(); ++t) {
      const Table& table = given.tables[t];
      const std::string name = "t" + std::to_string(t);
      SR_OK(shardrec_model_add_table(model, name.c_str(), table.rows, table.dim, nullptr, nullptr));
      SR_OK(
          shardrec_model_add_feature(model, static_cast<int32_t>(t), name.c_str(), table.pooling));
    }
    shardrec_topology* topology = nullptr;
    SR_OK(shardrec_topology_create(2, 1, nullptr, &topology));
    shardrec_plan* plan = nullptr;
    SR_OK(shardrec_plan_create_empty(model, topology, nullptr, &plan));
    for (size_t t = 0; t < given.tables.size(); ++t) {
      const auto index = static_cast<int32_t>(t);
      if (given.tables[t].boxes.empty()) {
        SR_OK(shardrec_plan_replicate(plan, index, SHARDREC_REPLICATION_SAMPLES));
      }
      for (const auto& box : given.tables[t].boxes) {
        SR_OK(add_box(plan, index, static_cast<int32_t>(box[0]), box[1], box[2], box[3], box[4]));
      }
    }
    shardrec_collection* tables = nullptr;
    SR_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables));
    shardrec_lookup* lookup = nullptr;
    SR_OK(shardrec_lookup_create(tables, nullptr, &lookup));

    std::vector<std::vector<float>> contents;
    for (size_t t = 0; t < given.tables.size(); ++t) {
      const Table& table = given.tables[t];
      std::vector<float> values(static_cast<size_t>(table.rows * table.dim));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(static_cast<int64_t>(i) / table.dim + 1);
      }
      const shardrec_tensor tensor = matrix(values.data(), table.rows, table.dim);
      SR_OK(shardrec_collection_write_range(tables, static_cast<int32_t>(t), SHARDREC_TABLE_WEIGHTS,
                                            0, rank == 0 ? table.rows : 0,
                                            rank == 0 ? &tensor : nullptr));
      contents.push_back(values);
    }
    std::vector<int64_t> values;
    std::vector<int64_t> lengths;
    int64_t width = 0;
    for (size_t t = 0; t < given.tables.size(); ++t) {
      values.insert(values.end(), given.ids[t].begin(), given.ids[t].end());
      lengths.push_back(static_cast<int64_t>(given.ids[t].size()));
      width += given.tables[t].dim;
    }
    std::vector<float> weights = given.weights;
    const shardrec_tensor values_tensor = vector_of(values);
    const shardrec_tensor lengths_tensor = vector_of(lengths);
    const shardrec_tensor weights_tensor = vector_of(weights);
    SR_OK(begin_batch(lookup, {.batch_size = 1,
                               .values = &values_tensor,
                               .lengths = &lengths_tensor,
                               .weights = weights.empty() ? nullptr : &weights_tensor}));
    std::vector<float> out(static_cast<size_t>(width));
    const shardrec_tensor out_tensor = matrix(out.data(), 1, width);
    const shardrec_status status = shardrec_lookup_forward(lookup, 0, &out_tensor);
    if (status == SHARDREC_OK) {
      std::vector<float> gradient(out.size(), given.gradient);
      const shardrec_tensor gradient_tensor = matrix(gradient.data(), 1, width);
      SR_OK(shardrec_lookup_set_gradient(lookup, 0, &gradient_tensor));
      SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
    }
    std::vector<std::vector<float>> after;
    for (size_t t = 0; t < given.tables.size(); ++t) {
      const Table& table = given.tables[t];
      after.emplace_back(static_cast<size_t>(table.rows * table.dim));
      const shardrec_tensor tensor = matrix(after.back().data(), table.rows, table.dim);
      SR_OK(shardrec_collection_read_range(tables, static_cast<int32_t>(t), SHARDREC_TABLE_WEIGHTS,
                                           0, table.rows, &tensor));
    }
    if (rank == 0) {
      const std::lock_guard lock(mutex);
      result = {out, contents, after, status};
    }
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_topology_destroy(&topology);
    shardrec_model_destroy(&model);
  });
  return result;
}

const std::vector<std::array<int64_t, 5>> kRowWise10 = {{0, 0, 5, 0, 4}, {1, 5, 5, 0, 4}};
const std::vector<std::array<int64_t, 5>> kTableWise10 = {{1, 0, 10, 0, 4}};

TEST(TorchRecFaults, MeanAndSumUnderMixedKindsOfShardingKeepTheirOwnDivisors) {
  // A row-wise MEAN table once divided the columns of all others.
  const Case given{.tables = {{10, 4, SHARDREC_POOLING_MEAN, kRowWise10},
                              {10, 4, SHARDREC_POOLING_SUM, kTableWise10},
                              {10, 4, SHARDREC_POOLING_MEAN, kTableWise10},
                              {10, 4, SHARDREC_POOLING_SUM, {}},
                              {10, 4, SHARDREC_POOLING_SUM, kRowWise10}},
                   .ids = {{0, 9}, {7, 7, 7}, {8, 8}, {3, 2}, {0, 9, 4}}};
  const Result result = run(given);
  ASSERT_EQ(result.out.size(), 20U);
  const std::vector<float> expected = {5.5F, 24, 9, 7, 16};
  for (size_t t = 0; t < 5; ++t) {
    for (size_t c = 0; c < 4; ++c) EXPECT_EQ(result.out[t * 4 + c], expected[t]) << t;
  }
}

TEST(TorchRecFaults, GridMeanIsAMean) {
  const Case given{
      .tables = {{10,
                  4,
                  SHARDREC_POOLING_MEAN,
                  {{0, 0, 5, 0, 2}, {1, 5, 5, 0, 2}, {1, 0, 5, 2, 2}, {0, 5, 5, 2, 2}}}},
      .ids = {{4, 6}}};
  const Result result = run(given);
  for (const float x : result.out) EXPECT_EQ(x, 6);
}

TEST(TorchRecFaults, RowWiseDividesExactlyAndLeavesSumsAlone) {
  const Case given{.tables = {{10, 4, SHARDREC_POOLING_SUM, kRowWise10},
                              {10, 4, SHARDREC_POOLING_MEAN, kRowWise10},
                              {10, 4, SHARDREC_POOLING_MEAN, kRowWise10}},
                   .ids = {{9, 9, 9, 9, 7}, {9, 9, 7, 1}, {}}};
  const Result result = run(given);
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(result.out[c], 48);
    EXPECT_EQ(result.out[4 + c], 7.5F);
    EXPECT_EQ(result.out[8 + c], 0);
  }
}

TEST(TorchRecFaults, WeightedMeanHasOneDefinitionUnderEveryKind) {
  const Case given{.tables = {{10, 4, SHARDREC_POOLING_MEAN, kRowWise10},
                              {10, 4, SHARDREC_POOLING_MEAN, kTableWise10},
                              {10, 4, SHARDREC_POOLING_MEAN, {}}},
                   .ids = {{1, 7}, {1, 7}, {1, 7}},
                   .weights = {1, 0.5F, 1, 0.5F, 1, 0.5F}};
  const Result result = run(given);
  for (const float x : result.out) EXPECT_EQ(x, 3);  // (1 * 2 + 0.5 * 8) / 2
}

TEST(TorchRecFaults, UnevenRowBoxesAreRoutedByTheirBorders) {
  const Case given{.tables = {{10, 4, SHARDREC_POOLING_SUM, {{0, 0, 3, 0, 4}, {1, 3, 7, 0, 4}}}},
                   .ids = {{3, 4, 9}}};
  const Result result = run(given);
  for (const float x : result.out) EXPECT_EQ(x, 4 + 5 + 10);
  for (int64_t row = 0; row < 10; ++row) {
    const bool touched = row == 3 || row == 4 || row == 9;
    for (int64_t c = 0; c < 4; ++c) {
      const auto i = static_cast<size_t>(row * 4 + c);
      // Two ranks with gradient 1 each, divided by the number of ranks.
      EXPECT_EQ(result.after[0][i], result.before[0][i] - (touched ? 1 : 0)) << row;
    }
  }
}

TEST(TorchRecFaults, IdsOutOfRangeTrainNoRowInTheirPlace) {
  for (const int64_t id : {10, -3, 13, 25}) {
    const Case given{.tables = {{10, 4, SHARDREC_POOLING_SUM, kRowWise10}}, .ids = {{1, id}}};
    const Result result = run(given);
    EXPECT_EQ(result.status, SHARDREC_INVALID_BATCH) << id;
    EXPECT_EQ(result.after, result.before) << id;
  }
}

TEST(TorchRecFaults, TablesTrainUnderAPlanMadeByHand) {
  const Case given{
      .tables = {{10, 4, SHARDREC_POOLING_SUM, kTableWise10}}, .ids = {{1, 1}}, .gradient = 2};
  const Result result = run(given);
  // (2 + 2) of each of two ranks, divided by 2.
  for (size_t c = 0; c < 4; ++c) EXPECT_EQ(result.after[0][4 + c], result.before[0][4 + c] - 4);
}

TEST(FbgemmFaults, WeightDecayIsAppliedOnTheCpu) {
  Case given{.tables = {{3, 4, SHARDREC_POOLING_SUM, {{0, 0, 3, 0, 4}}}},
             .ids = {{1}},
             .learning_rate = 0.5,
             .weight_decay = 0.25,
             .decay_mode = SHARDREC_WEIGHT_DECAY_L2,
             .gradient = 1};
  EXPECT_EQ(run(given).after[0][4], 2 - 0.5F * (1 + 0.25F * 2));
  given.decay_mode = SHARDREC_WEIGHT_DECAY_DECOUPLE;
  EXPECT_EQ(run(given).after[0][4], 2 * (1 - 0.5F * 0.25F) - 0.5F);
  given.optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
  EXPECT_NEAR(run(given).after[0][4], 2 * (1 - 0.5 * 0.25) - 0.5, 1e-6);
}

TEST(FbgemmFaults, BackwardOfAWeightedMeanDividesByTheLength) {
  const Case given{.tables = {{10, 4, SHARDREC_POOLING_MEAN, kTableWise10}},
                   .ids = {{1, 7}},
                   .weights = {3, 0.5F},
                   .gradient = 4};
  const Result result = run(given);
  for (size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(result.after[0][4 + c], 2 - 3 * 4 / 2.0F);
    EXPECT_EQ(result.after[0][28 + c], 8 - 0.5F * 4 / 2);
  }
}

TEST(FbgemmFaults, ARankWithoutRowsOfATableDoesNotDisturbTheOthers) {
  // A shard of no rows once made the next table of the same operator miss updates.
  const Case given{.tables = {{3, 8, SHARDREC_POOLING_SUM, {{0, 0, 3, 0, 8}}},
                              {1, 4, SHARDREC_POOLING_SUM, {{0, 0, 1, 0, 4}}},
                              {4, 8, SHARDREC_POOLING_SUM, {{0, 0, 2, 0, 8}, {1, 2, 2, 0, 8}}}},
                   .ids = {{2}, {}, {0, 3}}};
  const Result result = run(given);
  for (size_t c = 0; c < 8; ++c) {
    EXPECT_EQ(result.after[0][16 + c], result.before[0][16 + c] - 1);
    EXPECT_EQ(result.after[2][c], result.before[2][c] - 1);
    EXPECT_EQ(result.after[2][24 + c], result.before[2][24 + c] - 1);
  }
  EXPECT_EQ(result.after[1], result.before[1]);
}

}  // namespace
}  // namespace shardrec::test
