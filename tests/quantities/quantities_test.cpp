// The sizes that the library promises: many tables, narrow and wide rows, tables that no machine
// holds, long bags, large batches. Values are small whole numbers, so that sums are exact.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

constexpr float kRate = 1.0F / 1024;  // a power of two: weights stay exact

// A model of `dims.size()` tables of `rows` rows, a feature each, SGD, gradients as they are.
struct Sharded {
  Sharded(shardrec_comm* comm, int64_t rows, const std::vector<int64_t>& dims,
          shardrec_sharding kind) {
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model));
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_EXPECT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, kRate));
    SR_EXPECT_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_INIT, SHARDREC_INIT_ZEROS));
    for (size_t t = 0; t < dims.size(); ++t) {
      const std::string name = "t" + std::to_string(t);
      SR_EXPECT_OK(shardrec_model_add_table(model, name.c_str(), rows, dims[t], options, nullptr));
      SR_EXPECT_OK(shardrec_model_add_feature(model, static_cast<int32_t>(t), name.c_str(),
                                              SHARDREC_POOLING_SUM));
    }
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, kind));
    SR_EXPECT_OK(shardrec_plan_collective(comm, nullptr, model, options, &plan));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_EXPECT_OK(
        shardrec_options_set_i64(options, SHARDREC_OPTION_GRADIENT_DIVISOR, SHARDREC_DIVISOR_NONE));
    created = shardrec_collection_create(comm, nullptr, model, plan, options, &tables);
    shardrec_options_destroy(&options);
    if (created != SHARDREC_OK) return;
    SR_EXPECT_OK(shardrec_lookup_create(tables, nullptr, &lookup));
  }
  ~Sharded() {
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
  }
  Sharded(const Sharded&) = delete;
  Sharded& operator=(const Sharded&) = delete;

  // One step whose gradients are all 1; returns the output.
  std::vector<float> step(int64_t batch, std::vector<int32_t>& values,
                          std::vector<int32_t>& lengths, int64_t width) const {
    std::vector<float> out(static_cast<size_t>(batch * width));
    std::vector<float> ones(out.size(), 1.0F);
    const shardrec_tensor ids = vector_of(values);
    const shardrec_tensor counts = vector_of(lengths);
    const shardrec_tensor rows = matrix(out.data(), batch, width);
    const shardrec_tensor gradient = matrix(ones.data(), batch, width);
    SR_EXPECT_OK(begin_batch(lookup, {.batch_size = batch, .values = &ids, .lengths = &counts}));
    SR_EXPECT_OK(shardrec_lookup_forward(lookup, 0, &rows));
    SR_EXPECT_OK(shardrec_lookup_set_gradient(lookup, 0, &gradient));
    SR_EXPECT_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
    return out;
  }

  shardrec_status created = SHARDREC_INTERNAL;
  shardrec_model* model = nullptr;
  shardrec_plan* plan = nullptr;
  shardrec_collection* tables = nullptr;
  shardrec_lookup* lookup = nullptr;
};

// Every element is `value`.
void expect_all(const std::vector<float>& out, float value) {
  for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], value) << "element " << i;
}

TEST(Quantities, FiveThousandTablesInOneCollection) {
  const auto start = std::chrono::steady_clock::now();
  run_ranks(2, 1, [](int, shardrec_comm* comm) {
    const std::vector<int64_t> dims(5000, 4);
    const Sharded sharded(comm, 10, dims, SHARDREC_SHARDING_MIXED);
    ASSERT_EQ(sharded.created, SHARDREC_OK) << shardrec_last_error();
    std::vector<int32_t> values(2 * dims.size());
    std::vector<int32_t> lengths(2 * dims.size(), 1);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i % 2);
    expect_all(sharded.step(2, values, lengths, 20000), 0);
    // Row 0 and row 1 of every table: once from each of two ranks.
    expect_all(sharded.step(2, values, lengths, 20000), -2 * kRate);
  });
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("5,000 tables on 2 ranks: made, two steps, destroyed in %.2f s\n", seconds.count());
}

TEST(Quantities, DimensionsFrom1To4096) {
  const std::vector<int64_t> dims = {1,  2,  3,  4,   5,   7,   8,   12,   15,   16,   17,  31,
                                     33, 63, 64, 100, 128, 255, 513, 1000, 1024, 2047, 4096};
  const int64_t width = std::accumulate(dims.begin(), dims.end(), int64_t{0});
  for (const auto kind : {SHARDREC_SHARDING_TABLE_WISE, SHARDREC_SHARDING_COLUMN_WISE}) {
    run_ranks(2, 1, [&](int, shardrec_comm* comm) {
      const Sharded sharded(comm, 3, dims, kind);
      ASSERT_EQ(sharded.created, SHARDREC_OK) << shardrec_last_error();
      std::vector<int32_t> values(dims.size(), 2);
      std::vector<int32_t> lengths(dims.size(), 1);
      expect_all(sharded.step(1, values, lengths, width), 0);
      expect_all(sharded.step(1, values, lengths, width), -2 * kRate);
    });
  }
}

TEST(Quantities, TablesThatNoMachineHoldsArePlannedAndRefusedWithTheirBytes) {
  constexpr int64_t kRows = int64_t{1} << 40;
  run_ranks(2, 1, [&](int, shardrec_comm* comm) {
    const Sharded sharded(comm, kRows, {64}, SHARDREC_SHARDING_ROW_WISE);
    int32_t boxes = 0;
    SR_OK(shardrec_plan_box_count(sharded.plan, 0, &boxes));
    EXPECT_EQ(boxes, 2);
    shardrec_box box{};
    SR_OK(read_box(sharded.plan, 0, 1, &box));
    EXPECT_EQ(box.row, kRows / 2);
    EXPECT_EQ(box.rows, kRows / 2);
    EXPECT_EQ(sharded.created, SHARDREC_OUT_OF_MEMORY);
    int64_t bytes = 0;
    SR_OK(shardrec_last_error_i64(SHARDREC_ERROR_VALUE, &bytes));
    // Both ranks live on this machine; beside the rows it is what their steps keep of each other.
    EXPECT_GE(bytes, kRows * 64 * 4);
    EXPECT_LE(bytes, kRows * 64 * 4 + (1 << 20));
    EXPECT_NE(std::string(shardrec_last_error()).find(std::to_string(bytes)), std::string::npos);
    // The communicator lives on.
    SR_EXPECT_OK(shardrec_comm_barrier(comm));
  });
}

TEST(Quantities, OneBagOfAMillionIds) {
  run_ranks(2, 1, [](int rank, shardrec_comm* comm) {
    const Sharded sharded(comm, 8, {4}, SHARDREC_SHARDING_ROW_WISE);
    ASSERT_EQ(sharded.created, SHARDREC_OK) << shardrec_last_error();
    // Rank 0 has one bag: row 5, a million times. Rank 1 has an empty one.
    const size_t ids = rank == 0 ? 1'000'000 : 0;
    std::vector<int32_t> values(ids, 5);
    std::vector<int32_t> lengths = {static_cast<int32_t>(ids)};
    expect_all(sharded.step(1, values, lengths, 4), 0);
    std::vector<float> row(4);
    const shardrec_tensor tensor = matrix(row.data(), 1, 4);
    SR_OK(shardrec_collection_read_range(sharded.tables, 0, SHARDREC_TABLE_WEIGHTS, 5, 1, &tensor));
    expect_all(row, -1'000'000 * kRate);
    // Its sum again: a million times one, which float32 holds.
    row.assign(4, 1.0F);
    SR_OK(
        shardrec_collection_write_range(sharded.tables, 0, SHARDREC_TABLE_WEIGHTS, 5, 1, &tensor));
    expect_all(sharded.step(1, values, lengths, 4), rank == 0 ? 1'000'000.0F : 0.0F);
  });
}

TEST(Quantities, ABatchOfAMillionSamples) {
  run_ranks(2, 1, [](int, shardrec_comm* comm) {
    constexpr int64_t kBatch = 1'000'000;
    const Sharded sharded(comm, 1000, {2}, SHARDREC_SHARDING_ROW_WISE);
    ASSERT_EQ(sharded.created, SHARDREC_OK) << shardrec_last_error();
    std::vector<int32_t> values(kBatch);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int32_t>(i % 1000);
    std::vector<int32_t> lengths(kBatch, 1);
    expect_all(sharded.step(kBatch, values, lengths, 2), 0);
    // Every row a thousand times on each of two ranks.
    expect_all(sharded.step(kBatch, values, lengths, 2), -2000 * kRate);
  });
}

}  // namespace
}  // namespace shardrec::test
