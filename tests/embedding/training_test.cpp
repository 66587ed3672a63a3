// What a host does to a training beside its steps: accumulating, settings that change, states
// written and read, checkpoints under another plan.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/ranks.h"
#include "support/structs.h"
#include "support/tables_alone.h"

namespace shardrec::test {
namespace {

constexpr int64_t kRows = 40;
constexpr int64_t kDim = 12;

struct Given {
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_SGD;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  shardrec_sharding sharding = SHARDREC_SHARDING_GRID;
  double learning_rate = 0.1;
};

// One rank's tables, two of them with one feature each, and a lookup. The global batch is of two
// samples per step, whatever the number of ranks; rank 0 brings both.
class Trainer {
 public:
  shardrec_collection* tables = nullptr;
  shardrec_lookup* lookup = nullptr;

  Trainer(const Given& setup, int rank, shardrec_comm* comm) : rank_(rank) { create(setup, comm); }
  ~Trainer() {
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan_);
    shardrec_model_destroy(&model_);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Up to the gradient.
  void begin(int step) {
    const int64_t samples = rank_ == 0 ? 2 : 0;
    std::vector<int64_t> values;
    for (int64_t i = 0; i < 6 * samples; ++i) values.push_back((step * 7 + i * i) % kRows);
    std::vector<int64_t> lengths(static_cast<size_t>(2 * samples), 3);
    std::vector<float> out(static_cast<size_t>(samples * 2 * kDim));
    std::vector<float> gradient(out.size());
    for (size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = static_cast<float>(static_cast<int>(i * 5 + static_cast<size_t>(step)) % 9 - 4);
    }
    const shardrec_tensor values_tensor = vector_of(values);
    const shardrec_tensor lengths_tensor = vector_of(lengths);
    const shardrec_tensor out_tensor = matrix(out.data(), samples, 2 * kDim);
    const shardrec_tensor gradient_tensor = matrix(gradient.data(), samples, 2 * kDim);
    SR_OK(begin_batch(
        lookup, {.batch_size = samples, .values = &values_tensor, .lengths = &lengths_tensor}));
    SR_OK(shardrec_lookup_forward(lookup, 0, &out_tensor));
    SR_OK(shardrec_lookup_set_gradient(lookup, 0, &gradient_tensor));
  }
  void train(int step) {
    begin(step);
    SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
  }
  std::vector<float> read(int32_t table, shardrec_table_part part = SHARDREC_TABLE_WEIGHTS) {
    std::vector<float> values(static_cast<size_t>(kRows * kDim), -1);
    const shardrec_tensor tensor = matrix(values.data(), kRows, kDim);
    SR_EXPECT_OK(shardrec_collection_read_range(tables, table, part, 0, kRows, &tensor));
    return values;
  }
  void write(int32_t table, shardrec_table_part part, std::vector<float> values) {
    const shardrec_tensor tensor = matrix(values.data(), kRows, kDim);
    const bool writes = rank_ == 0;
    SR_OK(shardrec_collection_write_range(tables, table, part, 0, writes ? kRows : 0,
                                          writes ? &tensor : nullptr));
  }
  int64_t step() const {
    int64_t step = -1;
    SR_EXPECT_OK(shardrec_collection_step(tables, &step));
    return step;
  }

 private:
  void create(const Given& setup, shardrec_comm* comm) {
    SR_OK(shardrec_model_create(nullptr, &model_));
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER, setup.optimizer));
    SR_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, setup.learning_rate));
    SR_OK(shardrec_model_set_optimizer(model_, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DTYPE, setup.dtype));
    for (const char* name : {"a", "b"}) {
      int32_t table = -1;
      SR_OK(shardrec_model_add_table(model_, name, kRows, kDim, options, &table));
      SR_OK(shardrec_model_add_feature(model_, table, name, SHARDREC_POOLING_SUM));
    }
    shardrec_options_destroy(&options);
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, setup.sharding));
    SR_OK(shardrec_plan_collective(comm, nullptr, model_, options, &plan_));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_OK(
        shardrec_options_set_i64(options, SHARDREC_OPTION_GRADIENT_DIVISOR, SHARDREC_DIVISOR_NONE));
    SR_OK(shardrec_collection_create(comm, nullptr, model_, plan_, options, &tables));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_lookup_create(tables, nullptr, &lookup));
  }

  int rank_;
  shardrec_model* model_ = nullptr;
  shardrec_plan* plan_ = nullptr;
};

TEST(Accumulate, MixedWithBackwardIsRefusedOnAllRanksAndChangesNothing) {
  run_ranks(3, 3, [](int rank, shardrec_comm* comm) {
    Trainer trainer({}, rank, comm);
    Trainer expected({}, rank, comm);
    trainer.begin(0);
    SR_OK(shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_ACCUMULATE));
    const std::vector<float> before = trainer.read(0);
    trainer.begin(1);
    EXPECT_EQ(rank == 1 ? shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_ACCUMULATE)
                        : shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_APPLY),
              SHARDREC_INVALID_BATCH);
    EXPECT_NE(std::string(shardrec_last_error()).find("rank 1"), std::string::npos)
        << shardrec_last_error();
    EXPECT_EQ(trainer.step(), 0);
    EXPECT_EQ(trainer.read(0), before);
    // A skip leaves what is kept alone as well; then it is applied as if nothing had happened.
    trainer.begin(1);
    SR_OK(rank == 2 ? shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_SKIP)
                    : shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_ACCUMULATE));
    trainer.train(2);
    EXPECT_EQ(trainer.step(), 1);
    expected.begin(0);
    SR_OK(shardrec_lookup_backward(expected.lookup, SHARDREC_UPDATE_ACCUMULATE));
    expected.train(2);
    EXPECT_EQ(trainer.read(0), expected.read(0));
    EXPECT_EQ(trainer.read(1), expected.read(1));
    EXPECT_NE(trainer.read(0), before);
  });
}

TEST(Settings, ThatDifferBetweenRanksAreRefusedOnAllOfThem) {
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    Trainer trainer({}, rank, comm);
    const std::vector<float> before = trainer.read(1);
    const auto refused = [&](const std::function<void(bool other)>& set) {
      set(rank == 1);
      trainer.begin(0);
      EXPECT_EQ(shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_APPLY),
                SHARDREC_INVALID_BATCH);
      EXPECT_NE(std::string(shardrec_last_error()).find("differ"), std::string::npos)
          << shardrec_last_error();
      set(false);
    };
    refused([&](bool other) {
      SR_OK(shardrec_collection_set_learning_rate(trainer.tables, SHARDREC_ALL_TABLES,
                                                  other ? 0.5 : 0.1));
    });
    refused([&](bool other) {
      SR_OK(shardrec_collection_set_learning_rate(trainer.tables, 1, other ? 0.5 : 0.1));
    });
    refused([&](bool other) {
      SR_OK(shardrec_collection_set_frozen(trainer.tables, 0, other ? 1 : 0));
    });
    refused(
        [&](bool other) { SR_OK(shardrec_collection_set_step(trainer.tables, other ? 3 : 0)); });
    EXPECT_EQ(trainer.read(1), before);
    trainer.train(0);
    EXPECT_NE(trainer.read(1), before);
  });
}

// Trains on batches 0 to 3; the first three are accumulated. frozen: whether table 0 is frozen in
// each of the four calls.
std::vector<float> accumulate_with(const std::array<bool, 4>& frozen, int rank,
                                   shardrec_comm* comm) {
  Trainer trainer({}, rank, comm);
  for (int step = 0; step < 4; ++step) {
    SR_EXPECT_OK(shardrec_collection_set_frozen(trainer.tables, 0,
                                                frozen[static_cast<size_t>(step)] ? 1 : 0));
    trainer.begin(step);
    SR_EXPECT_OK(step < 3 ? shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_ACCUMULATE)
                          : shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_APPLY));
  }
  return trainer.read(0);
}

// The table after one step with the gradients of these batches alone.
std::vector<float> trained_on(const std::vector<int>& batches, int rank, shardrec_comm* comm) {
  Trainer trainer({}, rank, comm);
  for (const int batch : batches) {
    trainer.begin(batch);
    SR_EXPECT_OK(batch != batches.back()
                     ? shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_ACCUMULATE)
                     : shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_APPLY));
  }
  return trainer.read(0);
}

TEST(Accumulate, DropsForGoodWhatItGetsOfAFrozenTable) {
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    const auto untrained = Trainer({}, rank, comm).read(0);
    const auto all = trained_on({0, 1, 2, 3}, rank, comm);
    const auto without_1 = trained_on({0, 2, 3}, rank, comm);
    ASSERT_NE(all, without_1);
    EXPECT_EQ(accumulate_with({false, false, false, false}, rank, comm), all);
    // What comes while the table is frozen is never applied; what came before is.
    EXPECT_EQ(accumulate_with({false, true, false, false}, rank, comm), without_1);
    EXPECT_EQ(accumulate_with({true, true, true, false}, rank, comm), trained_on({3}, rank, comm));
    // A backward while it is frozen drops what was accumulated before, too.
    EXPECT_EQ(accumulate_with({false, false, false, true}, rank, comm), untrained);
  });
}

TEST(Accumulate, ABackwardOfAFrozenTableLeavesNothingForTheNext) {
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    Trainer trainer({}, rank, comm);
    trainer.begin(0);
    SR_OK(shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_ACCUMULATE));
    SR_OK(shardrec_collection_set_frozen(trainer.tables, 0, 1));
    trainer.train(1);
    SR_OK(shardrec_collection_set_frozen(trainer.tables, 0, 0));
    trainer.train(3);
    EXPECT_EQ(trainer.read(0), trained_on({3}, rank, comm));
  });
}

TEST(Settings, FreezingAndThawingBetweenForwardAndBackwardHold) {
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    for (const bool freezes : {true, false}) {
      Trainer trainer({}, rank, comm);
      Trainer expected({}, rank, comm);
      SR_OK(shardrec_collection_set_frozen(trainer.tables, 0, freezes ? 0 : 1));
      trainer.begin(0);
      SR_OK(shardrec_collection_set_frozen(trainer.tables, 0, freezes ? 1 : 0));
      SR_OK(shardrec_lookup_backward(trainer.lookup, SHARDREC_UPDATE_APPLY));
      SR_OK(shardrec_collection_set_frozen(expected.tables, 0, freezes ? 1 : 0));
      expected.train(0);
      EXPECT_EQ(trainer.read(0), expected.read(0));
      EXPECT_EQ(trainer.read(1), expected.read(1));
    }
  });
}

TEST(Settings, LearningRatesAreOfOneTableAndFrozenTablesStay) {
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    Trainer trainer({}, rank, comm);
    Trainer expected({.learning_rate = 0.5}, rank, comm);
    SR_OK(shardrec_collection_set_learning_rate(trainer.tables, 1, 0.5));
    SR_OK(shardrec_collection_set_frozen(trainer.tables, 0, 1));
    const std::vector<float> frozen = trainer.read(0);
    trainer.train(0);
    expected.train(0);
    EXPECT_EQ(trainer.read(0), frozen);
    EXPECT_EQ(trainer.read(1), expected.read(1));
    double rate = 0;
    int32_t is_frozen = -1;
    SR_OK(shardrec_collection_learning_rate(trainer.tables, 1, &rate));
    EXPECT_EQ(rate, 0.5);
    SR_OK(shardrec_collection_set_learning_rate(trainer.tables, SHARDREC_ALL_TABLES, 0.25));
    for (const int32_t table : {0, 1}) {
      SR_OK(shardrec_collection_learning_rate(trainer.tables, table, &rate));
      EXPECT_EQ(rate, 0.25);
      SR_OK(shardrec_collection_frozen(trainer.tables, table, &is_frozen));
      EXPECT_EQ(is_frozen, table == 0 ? 1 : 0);
    }
    EXPECT_EQ(shardrec_collection_learning_rate(trainer.tables, 2, &rate), SHARDREC_NOT_FOUND);
    EXPECT_EQ(shardrec_collection_frozen(trainer.tables, SHARDREC_ALL_TABLES, &is_frozen),
              SHARDREC_NOT_FOUND);
    EXPECT_EQ(shardrec_collection_set_frozen(trainer.tables, 2, 1), SHARDREC_NOT_FOUND);
    EXPECT_EQ(shardrec_collection_set_frozen(trainer.tables, 0, 2), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(shardrec_collection_set_step(trainer.tables, -1), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(shardrec_collection_set_learning_rate(trainer.tables, 2, 1), SHARDREC_NOT_FOUND);
    EXPECT_EQ(shardrec_collection_set_learning_rate(trainer.tables, 0, -1),
              SHARDREC_INVALID_ARGUMENT);
  });
}

TEST(WarmStart, WeightsStatesAndStepGoOnLikeTheTrainingTheyCameFrom) {
  run_ranks(3, 3, [](int rank, shardrec_comm* comm) {
    const Given setup{.optimizer = SHARDREC_OPTIMIZER_ADAM, .dtype = SHARDREC_FLOAT16};
    Given other = setup;
    other.sharding = SHARDREC_SHARDING_ROW_WISE;
    Trainer first(setup, rank, comm);
    Trainer second(other, rank, comm);
    for (int step = 0; step < 3; ++step) first.train(step);
    for (const int32_t table : {0, 1}) {
      for (const auto part :
           {SHARDREC_TABLE_WEIGHTS, SHARDREC_TABLE_STATE, SHARDREC_TABLE_STATE_2}) {
        second.write(table, part, first.read(table, part));
      }
    }
    SR_OK(shardrec_collection_set_step(second.tables, first.step()));
    for (int step = 3; step < 6; ++step) {
      first.train(step);
      second.train(step);
    }
    for (const auto part : {SHARDREC_TABLE_WEIGHTS, SHARDREC_TABLE_STATE, SHARDREC_TABLE_STATE_2}) {
      EXPECT_EQ(first.read(0, part), second.read(0, part));
    }
    float value = 0;
    const shardrec_tensor tensor = matrix(&value, 1, 1);
    EXPECT_EQ(shardrec_collection_read_range(first.tables, 0, static_cast<shardrec_table_part>(3),
                                             0, 1, &tensor),
              SHARDREC_NOT_FOUND);
    EXPECT_NE(std::string(shardrec_last_error()).find("STATE_2 (2: exp_avg_sq)"), std::string::npos)
        << shardrec_last_error();
  });
}

TEST(Checkpoint, OfAdamIn16BitsGoesOnUnderAnotherPlanAndNumberOfRanks) {
  std::string directory = (std::filesystem::temp_directory_path() / "shardrec-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const std::string path = directory + "/checkpoint";
  Given setup{.optimizer = SHARDREC_OPTIMIZER_ADAM, .dtype = SHARDREC_BFLOAT16};
  std::vector<std::vector<float>> expected;
  run_ranks(3, 3, [&](int rank, shardrec_comm* comm) {
    Trainer trainer(setup, rank, comm);
    for (int step = 0; step < 4; ++step) trainer.train(step);
    SR_OK(save_or_load_tables(comm, trainer.tables, path, true));
    for (int step = 4; step < 7; ++step) trainer.train(step);
    std::vector<std::vector<float>> values;
    for (const auto part : {SHARDREC_TABLE_WEIGHTS, SHARDREC_TABLE_STATE, SHARDREC_TABLE_STATE_2}) {
      values.push_back(trainer.read(0, part));
    }
    if (rank == 0) expected = values;
  });
  for (const auto sharding : {SHARDREC_SHARDING_COLUMN_WISE, SHARDREC_SHARDING_DATA_PARALLEL}) {
    setup.sharding = sharding;
    run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
      Trainer trainer(setup, rank, comm);
      trainer.begin(0);
      SR_OK(shardrec_lookup_backward(trainer.lookup,
                                     SHARDREC_UPDATE_ACCUMULATE));  // dropped by the load
      SR_OK(save_or_load_tables(comm, trainer.tables, path, false));
      EXPECT_EQ(trainer.step(), 4);
      for (int step = 4; step < 7; ++step) trainer.train(step);
      size_t k = 0;
      for (const auto part :
           {SHARDREC_TABLE_WEIGHTS, SHARDREC_TABLE_STATE, SHARDREC_TABLE_STATE_2}) {
        EXPECT_EQ(trainer.read(0, part), expected[k++]) << "part " << part;
      }
    });
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace shardrec::test
