// Bad batches: one rank's defect is told to all ranks with its place, changes nothing, and training
// goes on. Includes the rank that skips, the rank that ends early and the rank that never comes.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>

#include "support/eventually.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

constexpr int64_t kTableRows = 10;
constexpr int64_t kTableDim = 4;
constexpr int kRanks = 3;
constexpr int64_t kBatch = 2;

// What begin is given; a test spoils one thing.
struct Batch {
  int64_t batch_size = kBatch;
  std::vector<int64_t> ids = {1, 2, 3, 4, 5};
  std::vector<int64_t> lengths = {1, 1, 2, 1};  // feature "a": 1, 1; feature "b": 2, 1
  std::vector<int64_t> offsets = {0, 1, 2, 4, 5};
  std::vector<float> weights = {1, 1, 1, 1, 1};
  shardrec_tensor values_tensor{};
  shardrec_tensor lengths_tensor{};
  shardrec_tensor offsets_tensor{};
  shardrec_tensor weights_tensor{};
  bool has_values = true;
  bool has_lengths = true;
  bool has_offsets = false;
  bool has_weights = false;
  bool by_offsets = false;
  // Changes the tensors after they were made from the vectors.
  std::function<void(Batch&)> twist = {};

  shardrec_status begin(shardrec_lookup* lookup) {
    values_tensor = vector_of(ids);
    lengths_tensor = vector_of(lengths);
    offsets_tensor = vector_of(offsets);
    weights_tensor = vector_of(weights);
    if (twist) twist(*this);
    const shardrec_tensor* values = has_values ? &values_tensor : nullptr;
    const shardrec_tensor* w = has_weights ? &weights_tensor : nullptr;
    if (by_offsets) {
      return begin_batch(lookup, {.batch_size = batch_size,
                                  .values = values,
                                  .offsets = has_offsets ? &offsets_tensor : nullptr,
                                  .weights = w});
    }
    return begin_batch(lookup, {.batch_size = batch_size,
                                .values = values,
                                .lengths = has_lengths ? &lengths_tensor : nullptr,
                                .weights = w});
  }
};

// A device that no collection is on, whatever back end the tests run with.
void put_on_strange_device(shardrec_tensor& tensor) {
  tensor.device_type = SHARDREC_DEVICE_CUDA;
  tensor.device_id = 7;
}

// Nobody reads it there.
void shift_data(shardrec_tensor& tensor, size_t bytes) {
  tensor.data = static_cast<char*>(tensor.data) + bytes;
}

struct ExpectedError {
  std::string name;
  std::function<void(Batch&)> spoil;
  std::optional<int64_t> position;
  std::optional<int64_t> value;
  std::string feature;   // "": none
  std::string sentence;  // a part of it
};

std::vector<ExpectedError> cases() {
  std::vector<ExpectedError> list;
  const auto add = [&](ExpectedError expected) { list.push_back(std::move(expected)); };
  for (const int64_t id : {INT64_MIN, int64_t{-1}, kTableRows, INT64_MAX, int64_t{1} << 32}) {
    add({"id " + std::to_string(id), [id](Batch& b) { b.ids[3] = id; }, 3, id, "b",
         "ids must be in [0, 10)"});
  }
  add({"first id of the first feature", [](Batch& b) { b.ids[0] = 10; }, 0, 10, "a", "values[0]"});
  for (const int64_t length : {int64_t{-1}, INT64_MIN}) {
    add({"length " + std::to_string(length), [length](Batch& b) { b.lengths[2] = length; }, 2,
         length, "b", "must not be negative"});
  }
  add({"length INT64_MAX", [](Batch& b) { b.lengths[1] = INT64_MAX; }, 1, INT64_MAX, "a",
       "5 ids in all"});
  add({"lengths add up to less", [](Batch& b) { b.lengths[0] = 0; }, {}, 4, "", "add up to 4"});
  add({"lengths add up to more", [](Batch& b) { b.lengths[3] = 4; }, {}, 8, "", "add up to 8"});
  add({"too few lengths", [](Batch& b) { b.lengths.pop_back(); }, {}, 3, "", "must have 4"});
  add({"too many lengths", [](Batch& b) { b.lengths.push_back(0); }, {}, 5, "", "must have 4"});
  add({"lengths NULL", [](Batch& b) { b.has_lengths = false; }, {}, {}, "", "lengths is NULL"});
  add({"batch size negative",
       [](Batch& b) { b.batch_size = -1; },
       {},
       -1,
       "",
       "must not be negative"});
  add({"batch size INT64_MIN",
       [](Batch& b) { b.batch_size = INT64_MIN; },
       {},
       INT64_MIN,
       "",
       "must not be negative"});
  add({"batch size too large", [](Batch& b) { b.batch_size = 3; }, {}, 4, "", "must have 6"});
  add({"batch size INT64_MAX", [](Batch& b) { b.batch_size = INT64_MAX; }, {}, 4, "", "must have"});
  add({"end of data with lengths",
       [](Batch& b) { b.has_values = false, b.batch_size = 0; },
       {},
       {},
       "",
       "no more data"});
  add({"end of data with a batch size",
       [](Batch& b) { b.has_values = false, b.has_lengths = false; },
       {},
       {},
       "",
       "no more data"});
  add({"end of data with weights",
       [](Batch& b) {
         b.has_values = false, b.has_lengths = false, b.batch_size = 0, b.has_weights = true;
       },
       {},
       {},
       "",
       "no more data"});
  const auto twisted = [&](std::string name, std::function<void(Batch&)> twist,
                           std::optional<int64_t> value, std::string sentence) {
    add({std::move(name),
         [twist](Batch& b) { b.twist = twist; },
         {},
         value,
         "",
         std::move(sentence)});
  };
  twisted(
      "values on CUDA", [](Batch& b) { put_on_strange_device(b.values_tensor); }, 2,
      "device_type 2");
  twisted(
      "values of a garbage device", [](Batch& b) { b.values_tensor.device_type = -7; }, -7,
      "device_type -7");
  twisted(
      "values as float", [](Batch& b) { b.values_tensor.dtype = SHARDREC_FLOAT32; },
      SHARDREC_FLOAT32, "INT32 and INT64");
  twisted(
      "values of a garbage dtype", [](Batch& b) { b.values_tensor.dtype = 12345; }, 12345,
      "INT32 and INT64");
  twisted(
      "values with two dimensions", [](Batch& b) { b.values_tensor.ndim = 2; }, 2, "2 dimensions");
  twisted(
      "values with a garbage ndim", [](Batch& b) { b.values_tensor.ndim = INT32_MAX; }, INT32_MAX,
      "dimensions");
  twisted(
      "values with negative shape", [](Batch& b) { b.values_tensor.shape[0] = -5; }, -5,
      "must not be negative");
  twisted("values with a stride", [](Batch& b) { b.values_tensor.stride[0] = 2; }, 2, "stride 2");
  twisted(
      "values at an odd address", [](Batch& b) { shift_data(b.values_tensor, 1); }, SHARDREC_INT64,
      "values has data that is not aligned to its dtype, int64");
  twisted(
      "lengths between two addresses", [](Batch& b) { shift_data(b.lengths_tensor, 4); },
      SHARDREC_INT64, "lengths has data that is not aligned to its dtype, int64");
  twisted("values without data", [](Batch& b) { b.values_tensor.data = nullptr; }, {}, "data NULL");
  twisted(
      "more ids than 2^31 - 1", [](Batch& b) { b.values_tensor.shape[0] = int64_t{1} << 40; },
      int64_t{1} << 40, "at most");
  twisted(
      "lengths as double", [](Batch& b) { b.lengths_tensor.dtype = SHARDREC_FLOAT64; },
      SHARDREC_FLOAT64, "lengths has dtype");
  twisted(
      "lengths without data", [](Batch& b) { b.lengths_tensor.data = nullptr; }, {},
      "lengths has data NULL");
  twisted(
      "lengths with a negative stride", [](Batch& b) { b.lengths_tensor.stride[0] = -1; }, -1,
      "stride -1");
  const auto weighted = [&](std::string name, std::function<void(Batch&)> twist,
                            std::string sentence) {
    add({std::move(name),
         [twist](Batch& b) {
           b.has_weights = true;
           b.twist = twist;
         },
         {},
         {},
         "",
         std::move(sentence)});
  };
  weighted("weights too short", [](Batch& b) { b.weights_tensor.shape[0] = 4; }, "must have 5");
  weighted(
      "weights as int64", [](Batch& b) { b.weights_tensor.dtype = SHARDREC_INT64; },
      "FLOAT32 is accepted");
  weighted("weights on CUDA", [](Batch& b) { put_on_strange_device(b.weights_tensor); }, "weights");
  weighted(
      "weights at an odd address", [](Batch& b) { shift_data(b.weights_tensor, 2); },
      "weights has data that is not aligned to its dtype, float32");
  weighted(
      "weights without data", [](Batch& b) { b.weights_tensor.data = nullptr; },
      "weights has data NULL");
  const auto offsets = [&](std::string name, std::function<void(Batch&)> spoil,
                           std::optional<int64_t> position, std::optional<int64_t> value,
                           std::string feature, std::string sentence) {
    add({std::move(name),
         [spoil](Batch& b) {
           b.by_offsets = true;
           b.has_offsets = true;
           spoil(b);
         },
         position, value, std::move(feature), std::move(sentence)});
  };
  offsets(
      "offsets NULL", [](Batch& b) { b.has_offsets = false; }, {}, {}, "",
      "lengths is NULL, and so is offsets");
  offsets(
      "offsets go back", [](Batch& b) { b.offsets = {0, 3, 2, 4, 5}; }, 2, 2, "a",
      "below the offset 3");
  offsets(
      "offsets go back in the second feature", [](Batch& b) { b.offsets = {0, 1, 4, 3, 5}; }, 3, 3,
      "b", "below the offset 4");
  offsets("offsets start at 1", [](Batch& b) { b.offsets[0] = 1; }, 0, 1, "", "it must be 0");
  offsets("offsets start below 0", [](Batch& b) { b.offsets[0] = -1; }, 0, -1, "", "it must be 0");
  offsets("offsets end early", [](Batch& b) { b.offsets[4] = 4; }, {}, 4, "", "values has 5");
  offsets(
      "offsets end late", [](Batch& b) { b.offsets[4] = INT64_MAX; }, {}, INT64_MAX, "",
      "values has 5");
  offsets(
      "offsets jump over the end", [](Batch& b) { b.offsets = {0, INT64_MAX, 2, 4, 5}; }, 2, 2, "a",
      "below the offset");
  offsets(
      "offsets fall below 0", [](Batch& b) { b.offsets = {0, -9, 2, 4, 5}; }, 1, -9, "a",
      "below the offset 0");
  offsets("offsets too short", [](Batch& b) { b.offsets.pop_back(); }, {}, 4, "", "must have 5");
  return list;
}

// A rank's tables and lookup for the tests: two features "a", "b" on a row-wise table "t".
struct CheckedRank {
  shardrec_comm* comm = nullptr;
  shardrec_collection* tables = nullptr;
  shardrec_lookup* lookup = nullptr;
  std::vector<float> out = std::vector<float>(kBatch * 2 * kTableDim);
  std::vector<float> gradient = std::vector<float>(kBatch * 2 * kTableDim, 0.5F);

  CheckedRank(shardrec_comm* communicator, shardrec_sharding kind) : comm(communicator) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    shardrec_model* model = nullptr;
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model));
    SR_EXPECT_OK(shardrec_model_add_table(model, "t", kTableRows, kTableDim, nullptr, nullptr));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 0, "a", SHARDREC_POOLING_SUM));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 0, "b", SHARDREC_POOLING_MEAN));
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, kind));
    shardrec_plan* plan = nullptr;
    SR_EXPECT_OK(shardrec_plan_collective(comm, nullptr, model, options, &plan));
    SR_EXPECT_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables));
    SR_EXPECT_OK(shardrec_lookup_create(tables, nullptr, &lookup));
    shardrec_plan_destroy(&plan);
    shardrec_options_destroy(&options);
    shardrec_model_destroy(&model);
  }
  ~CheckedRank() {
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
  }
  CheckedRank(const CheckedRank&) = delete;
  CheckedRank& operator=(const CheckedRank&) = delete;

  std::vector<float> weights() {
    std::vector<float> rows(kTableRows * kTableDim);
    const shardrec_tensor tensor = matrix(rows.data(), kTableRows, kTableDim);
    SR_EXPECT_OK(
        shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, kTableRows, &tensor));
    return rows;
  }
  int64_t step() {
    int64_t step = -1;
    SR_EXPECT_OK(shardrec_collection_step(tables, &step));
    return step;
  }
  shardrec_status forward() {
    const shardrec_tensor tensor = matrix(out.data(), kBatch, 2 * kTableDim);
    return shardrec_lookup_forward(lookup, 0, &tensor);
  }
  shardrec_status set_gradient() {
    const shardrec_tensor tensor = matrix(gradient.data(), kBatch, 2 * kTableDim);
    return shardrec_lookup_set_gradient(lookup, 0, &tensor);
  }
  void good_step() {
    Batch batch;
    SR_OK(batch.begin(lookup));
    SR_OK(forward());
    SR_OK(set_gradient());
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

struct Spread {
  int ranks;
  shardrec_sharding sharding;
};
class BadBatch : public ::testing::TestWithParam<Spread> {};

TEST_P(BadBatch, OneRanksDefectIsToldToAllAndTrainingGoesOn) {
  const std::vector<ExpectedError> all = cases();
  ASSERT_GE(all.size(), 40U);
  const Spread spread = GetParam();
  run_ranks(spread.ranks, 1, [&](int rank, shardrec_comm* comm) {
    CheckedRank own(comm, spread.sharding);
    own.good_step();
    for (size_t c = 0; c < all.size(); ++c) {
      const ExpectedError& expected = all[c];
      SCOPED_TRACE(expected.name);
      const int failed_rank = static_cast<int>(c) % spread.ranks;
      const std::vector<float> before = own.weights();
      Batch batch;
      if (rank == failed_rank) expected.spoil(batch);
      SR_OK(batch.begin(own.lookup));
      const std::vector<float> out_before = own.out;
      ASSERT_EQ(own.forward(), SHARDREC_INVALID_BATCH) << shardrec_last_error();
      EXPECT_EQ(own.out, out_before);
      EXPECT_EQ(error_number(SHARDREC_ERROR_RANK), failed_rank);
      EXPECT_EQ(error_number(SHARDREC_ERROR_POSITION), expected.position);
      if (expected.value) {
        EXPECT_EQ(error_number(SHARDREC_ERROR_VALUE), expected.value);
      }
      EXPECT_EQ(error_text(SHARDREC_ERROR_FEATURE), expected.feature);
      EXPECT_EQ(error_text(SHARDREC_ERROR_TABLE), expected.feature.empty() ? "" : "t");
      EXPECT_EQ(error_text(SHARDREC_ERROR_OPERATION), "forward");
      EXPECT_NE(std::string(shardrec_last_error()).find(expected.sentence), std::string::npos)
          << shardrec_last_error();
      EXPECT_EQ(own.weights(), before);
      EXPECT_EQ(own.step(), static_cast<int64_t>(c) + 1);
      EXPECT_EQ(own.set_gradient(), SHARDREC_INVALID_STATE);
      EXPECT_EQ(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY),
                SHARDREC_INVALID_STATE);
      own.good_step();
      EXPECT_NE(own.weights(), before);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Kinds, BadBatch,
                         ::testing::Values(Spread{kRanks, SHARDREC_SHARDING_ROW_WISE},
                                           Spread{kRanks, SHARDREC_SHARDING_COLUMN_WISE},
                                           Spread{kRanks, SHARDREC_SHARDING_DATA_PARALLEL},
                                           // Nobody but the rank itself is told.
                                           Spread{1, SHARDREC_SHARDING_ROW_WISE}));

TEST(BadBatches, TheLowestRankIsNamedWhenSeveralAreBad) {
  run_ranks(kRanks, 3, [&](int rank, shardrec_comm* comm) {
    CheckedRank own(comm, SHARDREC_SHARDING_TABLE_WISE);
    Batch batch;
    if (rank > 0) batch.ids[static_cast<size_t>(rank)] = -rank;
    SR_OK(batch.begin(own.lookup));
    ASSERT_EQ(own.forward(), SHARDREC_INVALID_BATCH);
    EXPECT_EQ(error_number(SHARDREC_ERROR_RANK), 1);
    EXPECT_EQ(error_number(SHARDREC_ERROR_VALUE), -1);
  });
}

TEST(BadBatches, ABadOutputOrGradientIsThisRanksAloneAndMayBeTriedAgain) {
  run_ranks(kRanks, 3, [&](int rank, shardrec_comm* comm) {
    CheckedRank own(comm, SHARDREC_SHARDING_ROW_WISE);
    Batch batch;
    SR_OK(batch.begin(own.lookup));
    if (rank == 1) {
      std::vector<float> small(kTableDim);
      shardrec_tensor wrong = matrix(small.data(), 1, kTableDim);
      EXPECT_EQ(shardrec_lookup_forward(own.lookup, 0, &wrong), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(shardrec_lookup_forward(own.lookup, 0, nullptr), SHARDREC_INVALID_ARGUMENT);
      wrong = matrix(own.out.data(), kBatch, 2 * kTableDim);
      wrong.dtype = SHARDREC_FLOAT64;
      EXPECT_EQ(shardrec_lookup_forward(own.lookup, 0, &wrong), SHARDREC_INVALID_ARGUMENT);
      wrong = matrix(own.out.data(), kBatch, 2 * kTableDim);
      EXPECT_EQ(shardrec_lookup_forward(own.lookup, 1, &wrong), SHARDREC_NOT_FOUND);
      Batch again;
      EXPECT_EQ(again.begin(own.lookup), SHARDREC_INVALID_STATE);
    }
    SR_OK(own.forward());
    if (rank == 2) {
      shardrec_tensor wrong = matrix(own.gradient.data(), kBatch, 2 * kTableDim);
      put_on_strange_device(wrong);
      const shardrec_status refused = shardrec_lookup_set_gradient(own.lookup, 0, &wrong);
      EXPECT_TRUE(refused == SHARDREC_UNSUPPORTED || refused == SHARDREC_INVALID_ARGUMENT)
          << refused;  // the one where tables are on the CPU, the other where they are on a device
      wrong = matrix(own.gradient.data(), kBatch, 2 * kTableDim);
      wrong.stride[0] = 1;
      wrong.stride[1] = 2;
      EXPECT_EQ(shardrec_lookup_set_gradient(own.lookup, 0, &wrong), SHARDREC_INVALID_ARGUMENT);
    }
    SR_OK(own.set_gradient());
    SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY));
    EXPECT_EQ(own.step(), 1);
  });
}

TEST(BadBatches, ARankWithoutAGradientMakesTheStepInvalidOnAll) {
  run_ranks(kRanks, 3, [&](int rank, shardrec_comm* comm) {
    CheckedRank own(comm, SHARDREC_SHARDING_ROW_WISE);
    const std::vector<float> before = own.weights();
    Batch batch;
    SR_OK(batch.begin(own.lookup));
    SR_OK(own.forward());
    if (rank != 1) {
      SR_OK(own.set_gradient());
    }
    EXPECT_EQ(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY), SHARDREC_INVALID_BATCH);
    EXPECT_EQ(error_number(SHARDREC_ERROR_RANK), 1);
    EXPECT_EQ(error_text(SHARDREC_ERROR_OPERATION), "backward");
    EXPECT_EQ(own.weights(), before);
    EXPECT_EQ(own.step(), 0);
    own.good_step();
    EXPECT_EQ(own.step(), 1);
  });
}

TEST(BadBatches, OneSkipMeansThatNobodyUpdates) {
  run_ranks(kRanks, 3, [&](int rank, shardrec_comm* comm) {
    CheckedRank own(comm, SHARDREC_SHARDING_COLUMN_WISE);
    const std::vector<float> before = own.weights();
    Batch batch;
    SR_OK(batch.begin(own.lookup));
    SR_OK(own.forward());
    SR_OK(own.set_gradient());
    if (rank == 2) {
      SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_SKIP));
    } else {
      SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY));
    }
    EXPECT_EQ(own.step(), 0);
    EXPECT_EQ(own.weights(), before);
    own.good_step();
    EXPECT_EQ(own.step(), 1);
  });
}

TEST(BadBatches, ARankThatEndsEarlyTakesPartUntilAllAreDone) {
  run_ranks(kRanks, 3, [&](int rank, shardrec_comm* comm) {
    CheckedRank own(comm, SHARDREC_SHARDING_ROW_WISE);
    int steps = 0;
    for (;; ++steps) {
      const bool more = steps < 2 + rank;  // rank 2 has the most batches: 4
      Batch batch;
      std::vector<float> out(more ? kBatch * 2 * kTableDim : 0);
      std::vector<float> gradient(out.size(), 0.25F);
      if (more) {
        SR_OK(batch.begin(own.lookup));
      } else {
        SR_OK(begin_batch(own.lookup, {.batch_size = 0}));
      }
      const shardrec_tensor out_tensor = matrix(out.data(), more ? kBatch : 0, 2 * kTableDim);
      SR_OK(shardrec_lookup_forward(own.lookup, 0, &out_tensor));
      int32_t done = -1;
      SR_OK(shardrec_lookup_all_done(own.lookup, &done));
      EXPECT_EQ(done, steps < 4 ? 0 : 1);
      if (done == 1) break;
      const shardrec_tensor gradient_tensor =
          matrix(gradient.data(), more ? kBatch : 0, 2 * kTableDim);
      SR_OK(shardrec_lookup_set_gradient(own.lookup, 0, &gradient_tensor));
      SR_OK(shardrec_lookup_backward(own.lookup, SHARDREC_UPDATE_APPLY));
    }
    EXPECT_EQ(steps, 4);
    EXPECT_EQ(own.step(), 4);
  });
}

TEST(BadBatches, ARankThatNeverComesEndsTheOthersAtTheDeadline) {
  std::atomic<int> begun{0};
  std::atomic<int> waiting{kRanks - 1};
  run_ranks(kRanks, 3, [&](int rank, shardrec_comm* comm) {
    CheckedRank own(comm, SHARDREC_SHARDING_ROW_WISE);
    own.good_step();
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 0.3));
    if (rank == 1) {
      EXPECT_TRUE(test::eventually([&] { return waiting.load() == 0; }));
    } else {
      Batch batch;
      SR_EXPECT_OK(batch.begin(own.lookup));
      // On a busy machine, the deadline of one would pass before another one begins.
      begun.fetch_add(1);
      while (begun.load() != kRanks - 1) std::this_thread::yield();
      const auto start = std::chrono::steady_clock::now();
      const shardrec_status status = own.forward();
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      EXPECT_EQ(status, SHARDREC_TIMEOUT) << shardrec_last_error();
      EXPECT_EQ(error_number(SHARDREC_ERROR_RANK), 1);
      EXPECT_LT(waited.count(), 5);
      waiting.fetch_sub(1);
      EXPECT_EQ(batch.begin(own.lookup), SHARDREC_TIMEOUT);
    }
    EXPECT_NE(shardrec_comm_status(comm), SHARDREC_OK);
  });
}

TEST(BadBatches, DestroyingALookupBetweenBeginAndForwardFailsThePeersAtOnce) {
  std::atomic<int> begun{0};
  run_ranks(kRanks, 3, [&](int rank, shardrec_comm* comm) {
    CheckedRank own(comm, SHARDREC_SHARDING_ROW_WISE);
    Batch batch;
    SR_OK(batch.begin(own.lookup));
    begun.fetch_add(1);
    if (rank == 2) {
      while (begun.load() != kRanks) std::this_thread::yield();
      // Its ids are out; what the peers miss is its partial sums.
      shardrec_lookup_destroy(&own.lookup);
      EXPECT_EQ(own.lookup, nullptr);
      return;
    }
    EXPECT_EQ(own.forward(), SHARDREC_PEER_FAILED) << shardrec_last_error();
    EXPECT_EQ(error_number(SHARDREC_ERROR_RANK), 2);
  });
}

TEST(BadBatches, DifferentCallsAreAMismatchOnBothSides) {
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    CheckedRank own(comm, SHARDREC_SHARDING_ROW_WISE);
    if (rank == 0) {
      Batch batch;
      SR_OK(batch.begin(own.lookup));
      // The peer's ids arrived; then it reads rows while this rank looks up.
      EXPECT_EQ(own.forward(), SHARDREC_MISMATCH) << shardrec_last_error();
    } else {
      Batch batch;
      SR_OK(batch.begin(own.lookup));
      std::vector<float> rows(kTableRows * kTableDim);
      const shardrec_tensor tensor = matrix(rows.data(), kTableRows, kTableDim);
      EXPECT_EQ(shardrec_collection_read_range(own.tables, 0, SHARDREC_TABLE_WEIGHTS, 0, kTableRows,
                                               &tensor),
                SHARDREC_MISMATCH)
          << shardrec_last_error();
    }
  });
}

}  // namespace
}  // namespace shardrec::test
