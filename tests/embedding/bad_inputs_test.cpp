// Bad batches of sequences, of batch sizes per feature and of tables that take ids out of range,
// and bad outputs and gradients: told with their place, nothing changed, training goes on.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "embedding/half_matrix.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

constexpr int kInputRanks = 3;
constexpr int64_t kInputBatch = 3;
constexpr int64_t kWidth = 7;  // of output 0: "a" and "d"

// A batch of all kinds of features; a test spoils one thing.
//   table "t", ids out of range are errors: "a" (sum), "s" (a sequence)
//   table "u", they are dropped:            "d" (mean), "e" (a sequence)
struct Batch {
  int64_t batch_size = kInputBatch;
  std::vector<int64_t> batch_sizes = {2, 3, 1, 3};
  std::vector<int64_t> inverse = {0, 1, 0, 9, 9, 9, 0, 0, 0, -9, -9, -9};  // not read of sequences
  std::vector<int64_t> lengths = {1, 2, 1, 0, 1, 3, 0, 0, 1};
  std::vector<int64_t> ids = {1, 2, 3, 4, 5, 1, -7, 99, 77};
  std::vector<float> weights = std::vector<float>(9, 1.0F);
  shardrec_tensor values_tensor{};
  shardrec_tensor lengths_tensor{};
  shardrec_tensor sizes_tensor{};
  shardrec_tensor inverse_tensor{};
  shardrec_tensor weights_tensor{};
  bool has_values = true;
  bool has_lengths = true;
  bool has_sizes = true;
  bool has_inverse = true;
  bool has_weights = false;
  bool plain = false;
  // Changes the tensors after they were made from the vectors.
  std::function<void(Batch&)> twist = {};

  // The same, with as many bags as samples everywhere.
  void make_plain() {
    plain = true;
    lengths = {1, 2, 1, 1, 0, 1, 3, 0, 0, 0, 0, 1};
    ids = {1, 2, 3, 1, 4, 5, 1, -7, 99, 77};
  }

  shardrec_status begin(shardrec_lookup* lookup) {
    values_tensor = vector_of(ids);
    lengths_tensor = vector_of(lengths);
    sizes_tensor = vector_of(batch_sizes);
    inverse_tensor = vector_of(inverse);
    weights_tensor = vector_of(weights);
    if (twist) twist(*this);
    const auto given = [](bool has, const shardrec_tensor& tensor) {
      return has ? &tensor : nullptr;
    };
    if (plain) {
      return begin_batch(lookup, {.batch_size = batch_size,
                                  .values = given(has_values, values_tensor),
                                  .lengths = given(has_lengths, lengths_tensor),
                                  .weights = given(has_weights, weights_tensor)});
    }
    return begin_batch(lookup, {.batch_size = batch_size,
                                .values = given(has_values, values_tensor),
                                .lengths = given(has_lengths, lengths_tensor),
                                .weights = given(has_weights, weights_tensor),
                                .batch_sizes = given(has_sizes, sizes_tensor),
                                .inverse = given(has_inverse, inverse_tensor)});
  }
};

struct Expected {
  std::string name;
  std::function<void(Batch&)> spoil;
  std::optional<int64_t> position;
  std::optional<int64_t> value;
  std::string feature;   // "": none
  std::string sentence;  // a part of it
};

std::vector<Expected> cases() {
  std::vector<Expected> list;
  const auto add = [&](std::string name, std::function<void(Batch&)> spoil,
                       std::optional<int64_t> position, std::optional<int64_t> value,
                       std::string feature, std::string sentence) {
    list.push_back({std::move(name), std::move(spoil), position, value, std::move(feature),
                    std::move(sentence)});
  };
  const auto twisted = [&](std::string name, std::function<void(Batch&)> twist,
                           std::optional<int64_t> value, std::string sentence) {
    add(
        std::move(name), [twist](Batch& b) { b.twist = twist; }, {}, value, "",
        std::move(sentence));
  };
  add("no batch sizes", [](Batch& b) { b.has_sizes = false; }, {}, {}, "", "batch_sizes is NULL");
  add("too few batch sizes", [](Batch& b) { b.batch_sizes.pop_back(); }, {}, 3, "", "must have 4");
  add(
      "too many batch sizes", [](Batch& b) { b.batch_sizes.push_back(0); }, {}, 5, "",
      "must have 4");
  for (const int64_t size : {int64_t{-1}, INT64_MIN}) {
    add(
        "batch size " + std::to_string(size), [size](Batch& b) { b.batch_sizes[2] = size; }, 2,
        size, "d", "must not be negative");
  }
  for (const int64_t size : {int64_t{1} << 31, INT64_MAX}) {
    add(
        "batch size " + std::to_string(size), [size](Batch& b) { b.batch_sizes[1] = size; }, 1,
        size, "s", "at most 2147483647");
  }
  add("a batch size too large", [](Batch& b) { b.batch_sizes[0] = 3; }, {}, 9, "", "must have 10");
  add("a batch size too small", [](Batch& b) { b.batch_sizes[3] = 0; }, {}, 9, "", "must have 6");
  twisted(
      "batch sizes as float", [](Batch& b) { b.sizes_tensor.dtype = SHARDREC_FLOAT32; },
      SHARDREC_FLOAT32, "batch_sizes has dtype");
  twisted(
      "batch sizes on CUDA", [](Batch& b) { b.sizes_tensor.device_type = 2; }, 2,
      "batch_sizes has device_type 2");
  twisted(
      "batch sizes of two dimensions", [](Batch& b) { b.sizes_tensor.ndim = 2; }, 2,
      "batch_sizes has 2 dimensions");
  twisted(
      "batch sizes with a stride", [](Batch& b) { b.sizes_tensor.stride[0] = 3; }, 3,
      "batch_sizes has stride 3");
  twisted(
      "batch sizes without data", [](Batch& b) { b.sizes_tensor.data = nullptr; }, {},
      "batch_sizes has data NULL");
  add("no inverse", [](Batch& b) { b.has_inverse = false; }, {}, {}, "", "inverse is NULL");
  add("inverse too short", [](Batch& b) { b.inverse.pop_back(); }, {}, 11, "", "must have 12");
  add("inverse too long", [](Batch& b) { b.inverse.push_back(0); }, {}, 13, "", "must have 12");
  twisted(
      "inverse as double", [](Batch& b) { b.inverse_tensor.dtype = SHARDREC_FLOAT64; },
      SHARDREC_FLOAT64, "inverse has dtype");
  twisted(
      "inverse of a garbage device", [](Batch& b) { b.inverse_tensor.device_type = 77; }, 77,
      "inverse has device_type 77");
  twisted(
      "inverse of negative shape", [](Batch& b) { b.inverse_tensor.shape[0] = -1; }, -1,
      "inverse has shape -1");
  twisted(
      "inverse without data", [](Batch& b) { b.inverse_tensor.data = nullptr; }, {},
      "inverse has data NULL");
  for (const int64_t bag : {int64_t{2}, int64_t{-1}, INT64_MAX, INT64_MIN}) {
    add(
        "inverse " + std::to_string(bag), [bag](Batch& b) { b.inverse[1] = bag; }, 1, bag, "a",
        "bags are [0, 2)");
  }
  add(
      "inverse of the second table", [](Batch& b) { b.inverse[8] = 1; }, 8, 1, "d",
      "bags are [0, 1)");
  add(
      "samples of a feature without bags",
      [](Batch& b) {
        b.batch_sizes[2] = 0;
        b.lengths.erase(b.lengths.begin() + 5);
        b.ids.erase(b.ids.begin() + 5, b.ids.begin() + 8);
      },
      6, 0, "d", "bags are [0, 0)");
  add("samples negative", [](Batch& b) { b.batch_size = -2; }, {}, -2, "", "must not be negative");
  add(
      "more samples than the inverse has", [](Batch& b) { b.batch_size = 4; }, {}, 12, "",
      "must have 16");
  add("INT64_MAX samples", [](Batch& b) { b.batch_size = INT64_MAX; }, {}, {}, "", "must have");
  add("lengths NULL", [](Batch& b) { b.has_lengths = false; }, {}, {}, "", "lengths is NULL");
  add(
      "lengths of a plain batch", [](Batch& b) { b.lengths.resize(12, 0); }, {}, 12, "",
      "must have 9");
  add("lengths add up to more", [](Batch& b) { b.lengths[7] = 1; }, {}, 10, "", "add up to 10");
  add(
      "length negative in a sequence", [](Batch& b) { b.lengths[3] = -1; }, 3, -1, "s",
      "must not be negative");
  add(
      "length of all memory in a sequence", [](Batch& b) { b.lengths[8] = INT64_MAX; }, 8,
      INT64_MAX, "e", "9 ids in all");
  for (const int64_t id : {int64_t{10}, int64_t{-1}, INT64_MIN}) {
    add(
        "id " + std::to_string(id) + " in a sequence", [id](Batch& b) { b.ids[4] = id; }, 4, id,
        "s", "ids must be in [0, 10)");
    add(
        "id " + std::to_string(id) + " in a bag that is given once",
        [id](Batch& b) { b.ids[1] = id; }, 1, id, "a", "ids must be in [0, 10)");
  }
  add(
      "weights too short",
      [](Batch& b) {
        b.has_weights = true;
        b.weights.pop_back();
      },
      {}, 8, "", "must have 9");
  add(
      "end of data with batch sizes",
      [](Batch& b) {
        b.has_values = b.has_lengths = b.has_inverse = false;
        b.batch_size = 0;
      },
      {}, {}, "", "batch_sizes is given though values is NULL");
  add(
      "end of data with an inverse",
      [](Batch& b) {
        b.has_values = b.has_lengths = b.has_sizes = false;
        b.batch_size = 0;
      },
      {}, {}, "", "inverse is given though values is NULL");
  add(
      "plain: id in a sequence",
      [](Batch& b) {
        b.make_plain();
        b.ids[5] = 10;
      },
      5, 10, "s", "ids must be in [0, 10)");
  add(
      "plain: length in a sequence of a table that drops",
      [](Batch& b) {
        b.make_plain();
        b.lengths[9] = -5;
      },
      9, -5, "e", "must not be negative");
  add(
      "plain: a length short in a sequence",
      [](Batch& b) {
        b.make_plain();
        b.lengths[11] = 0;
      },
      {}, 9, "", "values has 10");
  return list;
}

struct Rank {
  shardrec_comm* comm = nullptr;
  shardrec_collection* tables = nullptr;
  shardrec_lookup* lookup = nullptr;
  shardrec_dtype dtype = SHARDREC_FLOAT32;

  Rank(shardrec_comm* communicator, shardrec_sharding kind, shardrec_dtype output_dtype)
      : comm(communicator), dtype(output_dtype) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    shardrec_model* model = nullptr;
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model));
    SR_EXPECT_OK(shardrec_model_add_table(model, "t", 10, 4, nullptr, nullptr));
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &options));
    SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_OUT_OF_RANGE, "drop"));
    SR_EXPECT_OK(shardrec_model_add_table(model, "u", 5, 3, options, nullptr));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_model_add_feature(model, 0, "a", SHARDREC_POOLING_SUM));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 0, "s", SHARDREC_POOLING_NONE));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 1, "d", SHARDREC_POOLING_MEAN));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 1, "e", SHARDREC_POOLING_NONE));
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, kind));
    shardrec_plan* plan = nullptr;
    SR_EXPECT_OK(shardrec_plan_collective(comm, nullptr, model, options, &plan));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OUTPUT_DTYPE, dtype));
    SR_EXPECT_OK(shardrec_collection_create(comm, nullptr, model, plan, options, &tables));
    SR_EXPECT_OK(shardrec_lookup_create(tables, nullptr, &lookup));
    shardrec_options_destroy(&options);
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
  }
  ~Rank() {
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  std::vector<float> weights() {
    std::vector<float> t(40);
    std::vector<float> u(15);
    const shardrec_tensor t_tensor = matrix(t.data(), 10, 4);
    const shardrec_tensor u_tensor = matrix(u.data(), 5, 3);
    SR_EXPECT_OK(
        shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, 10, &t_tensor));
    SR_EXPECT_OK(
        shardrec_collection_read_range(tables, 1, SHARDREC_TABLE_WEIGHTS, 0, 5, &u_tensor));
    t.insert(t.end(), u.begin(), u.end());
    return t;
  }
  int64_t step() {
    int64_t step = -1;
    SR_EXPECT_OK(shardrec_collection_step(tables, &step));
    return step;
  }
  std::pair<int64_t, int64_t> shape(int32_t output) {
    int64_t rows = -1;
    int64_t columns = -1;
    SR_EXPECT_OK(shardrec_lookup_output_shape(lookup, output, &rows, &columns));
    return {rows, columns};
  }
  // Asks for an output in the shape that the library says.
  shardrec_status forward(int32_t output) {
    const auto [rows, columns] = shape(output);
    const HalfMatrix out(dtype, rows, columns);
    return shardrec_lookup_forward(lookup, output, &out.tensor);
  }
  shardrec_status set_gradient(int32_t output) {
    const auto [rows, columns] = shape(output);
    const HalfMatrix gradient(dtype, rows, columns,
                              std::vector<float>(static_cast<size_t>(rows * columns), 0.5F));
    return shardrec_lookup_set_gradient(lookup, output, &gradient.tensor);
  }
  void good_step() {
    Batch batch;
    SR_OK(batch.begin(lookup));
    for (int32_t output = 0; output < 3; ++output) SR_OK(forward(output));
    for (int32_t output = 0; output < 3; ++output) SR_OK(set_gradient(output));
    SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
  }
};

std::string error_text(shardrec_error_part part) {
  char* text = nullptr;
  if (shardrec_last_error_text(part, &text) != SHARDREC_OK) return "";
  std::string out = text;
  shardrec_text_free(text);
  return out;
}

std::optional<int64_t> error_number(shardrec_error_part part) {
  int64_t value = 0;
  if (shardrec_last_error_i64(part, &value) != SHARDREC_OK) return std::nullopt;
  return value;
}

class BadInput : public ::testing::TestWithParam<shardrec_sharding> {};

TEST_P(BadInput, OneRanksDefectIsToldToAllAndTrainingGoesOn) {
  const std::vector<Expected> all = cases();
  ASSERT_GE(all.size(), 40U);
  run_ranks(kInputRanks, 1, [&](int rank, shardrec_comm* comm) {
    Rank own(comm, GetParam(), SHARDREC_FLOAT32);
    own.good_step();
    for (size_t c = 0; c < all.size(); ++c) {
      const Expected& expected = all[c];
      SCOPED_TRACE(expected.name);
      const int failed_rank = static_cast<int>(c) % kInputRanks;
      const std::vector<float> before = own.weights();
      Batch batch;
      if (rank == failed_rank) expected.spoil(batch);
      SR_OK(batch.begin(own.lookup));
      EXPECT_EQ(own.shape(1), std::make_pair(int64_t{rank == failed_rank ? 0 : 2}, int64_t{4}));
      // Whichever output is asked for first.
      ASSERT_EQ(own.forward(static_cast<int32_t>(c) % 3), SHARDREC_INVALID_BATCH)
          << shardrec_last_error();
      EXPECT_EQ(error_number(SHARDREC_ERROR_RANK), failed_rank);
      EXPECT_EQ(error_number(SHARDREC_ERROR_POSITION), expected.position);
      if (expected.value) {
        EXPECT_EQ(error_number(SHARDREC_ERROR_VALUE), expected.value);
      }
      EXPECT_EQ(error_text(SHARDREC_ERROR_FEATURE), expected.feature);
      EXPECT_EQ(error_text(SHARDREC_ERROR_OPERATION), "forward");
      EXPECT_NE(std::string(shardrec_last_error()).find(expected.sentence), std::string::npos)
          << shardrec_last_error();
      EXPECT_EQ(own.weights(), before);
      EXPECT_EQ(own.step(), static_cast<int64_t>(c) + 1);
      int64_t rows = -3;
      EXPECT_EQ(shardrec_lookup_output_shape(own.lookup, 0, &rows, nullptr),
                SHARDREC_INVALID_STATE);
      EXPECT_EQ(rows, -3);
      own.good_step();
      EXPECT_NE(own.weights(), before);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, BadInput,
                         ::testing::Values(SHARDREC_SHARDING_ROW_WISE,
                                           SHARDREC_SHARDING_COLUMN_WISE,
                                           SHARDREC_SHARDING_DATA_PARALLEL));

class BadOutput : public ::testing::TestWithParam<shardrec_dtype> {};

TEST_P(BadOutput, IsThisRanksAloneAndMayBeTriedAgain) {
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    Rank own(comm, SHARDREC_SHARDING_ROW_WISE, GetParam());
    const shardrec_dtype other =
        GetParam() == SHARDREC_FLOAT16 ? SHARDREC_BFLOAT16 : SHARDREC_FLOAT16;
    struct Wrong {
      int32_t output;
      shardrec_dtype dtype;
      int64_t rows;
      int64_t columns;
      shardrec_status status;
    };
    const std::vector<Wrong> wrongs = {
        {0, GetParam(), kInputBatch - 1, kWidth, SHARDREC_INVALID_ARGUMENT},
        {0, GetParam(), kInputBatch, kWidth - 1, SHARDREC_INVALID_ARGUMENT},
        {0, other, kInputBatch, kWidth, SHARDREC_INVALID_ARGUMENT},
        {0, SHARDREC_FLOAT64, kInputBatch, kWidth, SHARDREC_INVALID_ARGUMENT},
        {1, GetParam(), 3, 4, SHARDREC_INVALID_ARGUMENT},
        {1, GetParam(), 2, 3, SHARDREC_INVALID_ARGUMENT},
        {1, other, 2, 4, SHARDREC_INVALID_ARGUMENT},
        {1, SHARDREC_INT32, 2, 4, SHARDREC_INVALID_ARGUMENT},
        {2, GetParam(), 0, 3, SHARDREC_INVALID_ARGUMENT},
        {2, GetParam(), kInputBatch, 3, SHARDREC_INVALID_ARGUMENT},
        {3, GetParam(), 1, 3, SHARDREC_NOT_FOUND},
        {-1, GetParam(), 1, 3, SHARDREC_NOT_FOUND},
        {INT32_MAX, GetParam(), 1, 3, SHARDREC_NOT_FOUND},
        {INT32_MIN, GetParam(), 1, 3, SHARDREC_NOT_FOUND},
    };
    std::vector<double> memory(100);
    const auto try_all = [&](auto call) {
      for (const Wrong& wrong : wrongs) {
        shardrec_tensor tensor{};
        SR_OK(
            shardrec_tensor_matrix(memory.data(), wrong.dtype, wrong.rows, wrong.columns, &tensor));
        EXPECT_EQ(call(own.lookup, wrong.output, &tensor), wrong.status) << wrong.output;
      }
      EXPECT_EQ(call(own.lookup, 1, nullptr), SHARDREC_INVALID_ARGUMENT);
    };
    Batch batch;
    SR_OK(batch.begin(own.lookup));
    EXPECT_EQ(own.shape(0), std::make_pair(kInputBatch, kWidth));
    EXPECT_EQ(own.shape(1), std::make_pair(int64_t{2}, int64_t{4}));
    EXPECT_EQ(own.shape(2), std::make_pair(int64_t{1}, int64_t{3}));
    if (rank == 0) try_all(shardrec_lookup_forward);
    for (const int32_t output : {2, 0, 1}) SR_OK(own.forward(output));
    for (const int32_t output : {1, 2, 0}) SR_OK(own.set_gradient(output));
    if (rank == 1) try_all(shardrec_lookup_set_gradient);
    const std::vector<float> memory_of_tables = own.weights();
    SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(own.step(), 1);
    EXPECT_NE(own.weights(), memory_of_tables);
  });
}

INSTANTIATE_TEST_SUITE_P(Dtypes, BadOutput,
                         ::testing::Values(SHARDREC_FLOAT32, SHARDREC_FLOAT16, SHARDREC_BFLOAT16));

TEST(MissingGradient, OfOneOutputIsInvalidOnAllAndOfAnEmptyOneIsNotMissed) {
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    Rank own(comm, SHARDREC_SHARDING_ROW_WISE, SHARDREC_FLOAT32);
    const std::vector<float> before = own.weights();
    for (int32_t missing = 0; missing < 3; ++missing) {
      Batch batch;
      SR_OK(batch.begin(own.lookup));
      SR_OK(own.forward(0));
      for (int32_t output = 0; output < 3; ++output) {
        if (rank == 0 || output != missing) {
          SR_OK(own.set_gradient(output));
        }
      }
      EXPECT_EQ(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY),
                SHARDREC_INVALID_BATCH);
      EXPECT_EQ(error_number(SHARDREC_ERROR_RANK), 1);
      EXPECT_EQ(error_number(SHARDREC_ERROR_VALUE), missing);
    }
    EXPECT_EQ(own.weights(), before);
    EXPECT_EQ(own.step(), 0);
    // Rank 1 has no ids of "s", and none of "e" either.
    Batch batch;
    if (rank == 1) {
      batch.batch_sizes = {2, 0, 1, 0};
      batch.lengths = {1, 2, 3};
      batch.ids = {1, 2, 3, 1, -7, 99};
    }
    SR_OK(batch.begin(own.lookup));
    SR_OK(own.forward(0));
    for (int32_t output = 0; output < 3; ++output) {
      if (rank == 0 || output == 0) {
        SR_OK(own.set_gradient(output));
      }
    }
    SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(own.step(), 1);
    // A rank with bags but without samples needs none at all.
    Batch none;
    if (rank == 1) {
      none.batch_size = 0;
      none.inverse = {};
      none.batch_sizes = {2, 0, 1, 0};
      none.lengths = {1, 2, 3};
      none.ids = {1, 2, 3, 1, -7, 99};
    }
    SR_OK(none.begin(own.lookup));
    SR_OK(own.forward(0));
    for (int32_t output = 0; rank == 0 && output < 3; ++output) SR_OK(own.set_gradient(output));
    SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(own.step(), 2);
  });
}

TEST(WeightGradient, IsAskedForByAllRanksOrTheForwardIsAMismatchAndTheCommunicatorLives) {
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    Rank own(comm, SHARDREC_SHARDING_ROW_WISE, SHARDREC_FLOAT32);
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_LOOKUP, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_WEIGHT_GRADIENT, rank));
    shardrec_lookup* lookup = nullptr;
    SR_OK(shardrec_lookup_create(own.tables, options, &lookup));
    Batch batch;
    SR_OK(batch.begin(lookup));
    const HalfMatrix out(SHARDREC_FLOAT32, kInputBatch, kWidth);
    EXPECT_EQ(shardrec_lookup_forward(lookup, 0, &out.tensor), SHARDREC_DISAGREEMENT);
    EXPECT_EQ(error_number(SHARDREC_ERROR_RANK), 1);
    EXPECT_NE(std::string(shardrec_last_error()).find("WEIGHT_GRADIENT"), std::string::npos);
    shardrec_lookup_destroy(&lookup);
    own.good_step();
    EXPECT_EQ(own.step(), 1);
    std::vector<float> values(9);
    shardrec_tensor tensor = vector_of(values);
    EXPECT_EQ(shardrec_lookup_weight_gradient(own.lookup, &tensor), SHARDREC_INVALID_STATE);

    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_WEIGHT_GRADIENT, 1));
    SR_OK(shardrec_lookup_create(own.tables, options, &lookup));
    shardrec_options_destroy(&options);
    std::swap(lookup, own.lookup);
    SR_OK(batch.begin(own.lookup));
    for (int32_t output = 0; output < 3; ++output) SR_OK(own.forward(output));
    for (int32_t output = 0; output < 3; ++output) SR_OK(own.set_gradient(output));
    EXPECT_EQ(shardrec_lookup_weight_gradient(own.lookup, &tensor), SHARDREC_INVALID_STATE);
    SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY));
    SR_OK(shardrec_lookup_weight_gradient(own.lookup, &tensor));
    EXPECT_EQ(values[7], 0);  // dropped
    EXPECT_EQ(values[3], 0);  // of a sequence
    EXPECT_NE(values[0], 0);
    tensor.shape[0] = 8;
    EXPECT_EQ(shardrec_lookup_weight_gradient(own.lookup, &tensor), SHARDREC_INVALID_ARGUMENT);
    tensor.shape[0] = 9;
    tensor.dtype = SHARDREC_INT32;
    EXPECT_EQ(shardrec_lookup_weight_gradient(own.lookup, &tensor), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(shardrec_lookup_weight_gradient(own.lookup, nullptr), SHARDREC_INVALID_ARGUMENT);
    own.good_step();
    SR_OK(batch.begin(own.lookup));
    tensor = vector_of(values);
    EXPECT_EQ(shardrec_lookup_weight_gradient(own.lookup, &tensor), SHARDREC_INVALID_STATE);
    SR_OK(own.forward(0));
    SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_SKIP));
    EXPECT_EQ(shardrec_lookup_weight_gradient(own.lookup, &tensor), SHARDREC_INVALID_STATE);
    shardrec_lookup_destroy(&lookup);
  });
}

// Bags that no sample uses: looked up, and stepped by a gradient of 0.
TEST(BagsWithoutSamples, LeaveTheirRowsAsTheyAreUnderSgd) {
  run_ranks(2, 1, [&](int rank, shardrec_comm* comm) {
    Rank own(comm, SHARDREC_SHARDING_ROW_WISE, SHARDREC_FLOAT32);
    const std::vector<float> before = own.weights();
    Batch batch;
    batch.batch_size = 1;
    batch.batch_sizes = {2, 0, 1, 0};
    batch.inverse = {1, 0, 0, 0};
    batch.lengths = {1, 2, 0};
    batch.ids = {7, 1, 2};  // bag {7} has no sample
    SR_OK(batch.begin(own.lookup));
    SR_OK(own.forward(0));
    SR_OK(own.set_gradient(0));
    SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY));
    const std::vector<float> after = own.weights();
    for (size_t i = 0; i < before.size(); ++i) {
      const bool touched = i / 4 == 1 || i / 4 == 2;
      EXPECT_EQ(before[i] != after[i], touched) << "rank " << rank << " element " << i;
    }
  });
}

}  // namespace
}  // namespace shardrec::test
