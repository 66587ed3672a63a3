// A rank with a table and two lookups, for tests of what stands between forward and the end of backward.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {

inline constexpr int64_t kRows = 12;
inline constexpr int64_t kDim = 8;

// One rank's table, cut by columns, whose optimizer sums over whole rows: a step exchanges something
// behind the gradients. Its lookups have a sample each of two ids.
class Trainer {
 public:
  explicit Trainer(shardrec_comm* comm, bool borrow = false) { create(comm, borrow); }
  ~Trainer() {
    for (shardrec_lookup*& lookup : lookups_) shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables_);
    shardrec_plan_destroy(&plan_);
    shardrec_model_destroy(&model_);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  shardrec_collection* tables() const { return tables_; }
  shardrec_lookup*& lookup(size_t number = 0) { return lookups_[number]; }

  void begin(int64_t id, size_t number = 0) {
    std::vector<int64_t> ids = {id % kRows, (id + 5) % kRows};
    std::vector<int64_t> lengths = {2};
    const shardrec_tensor values = vector_of(ids);
    const shardrec_tensor counts = vector_of(lengths);
    SR_OK(begin_batch(lookups_[number], {.batch_size = 1, .values = &values, .lengths = &counts}));
  }
  shardrec_status forward(size_t number = 0) {
    std::vector<float> out(kDim);
    const shardrec_tensor view = matrix(out.data(), 1, kDim);
    return shardrec_lookup_forward(lookups_[number], 0, &view);
  }
  // Lent gradients must stay, so that they are the caller's.
  static shardrec_status give(shardrec_lookup* lookup, std::vector<float>& gradient) {
    const shardrec_tensor view = matrix(gradient.data(), 1, kDim);
    return shardrec_lookup_set_gradient(lookup, 0, &view);
  }
  // Up to the gradient.
  void prepare(int64_t id, size_t number = 0) {
    begin(id, number);
    SR_OK(forward(number));
    SR_OK(give(lookups_[number], gradient_));
  }
  std::vector<float> read() {
    std::vector<float> rows(kRows * kDim, -1);
    const shardrec_tensor view = matrix(rows.data(), kRows, kDim);
    SR_EXPECT_OK(
        shardrec_collection_read_range(tables_, 0, SHARDREC_TABLE_WEIGHTS, 0, kRows, &view));
    return rows;
  }
  int64_t step() const {
    int64_t step = -1;
    SR_EXPECT_OK(shardrec_collection_step(tables_, &step));
    return step;
  }

 private:
  void create(shardrec_comm* comm, bool borrow) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    SR_OK(shardrec_model_create(nullptr, &model_));
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER,
                                   SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD));
    SR_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, 0.1));
    SR_OK(shardrec_model_set_optimizer(model_, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_model_add_table(model_, "t", kRows, kDim, nullptr, nullptr));
    SR_OK(shardrec_model_add_feature(model_, 0, "t", SHARDREC_POOLING_SUM));
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_OK(
        shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, SHARDREC_SHARDING_COLUMN_WISE));
    SR_OK(shardrec_plan_collective(comm, nullptr, model_, options, &plan_));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_OK(
        shardrec_options_set_i64(options, SHARDREC_OPTION_GRADIENT_DIVISOR, SHARDREC_DIVISOR_NONE));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 1));
    SR_OK(shardrec_collection_create(comm, nullptr, model_, plan_, options, &tables_));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_LOOKUP, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_BORROW, borrow ? 1 : 0));
    for (shardrec_lookup*& lookup : lookups_) {
      SR_OK(shardrec_lookup_create(tables_, options, &lookup));
    }
    shardrec_options_destroy(&options);
  }

  shardrec_model* model_ = nullptr;
  shardrec_plan* plan_ = nullptr;
  shardrec_collection* tables_ = nullptr;
  shardrec_lookup* lookups_[2] = {nullptr, nullptr};
  std::vector<float> gradient_ = {1, -2, 3, -4, 0.5F, 0.25F, -1, 2};
};

inline void expect_refused(shardrec_status status, const std::string& words) {
  EXPECT_EQ(status, SHARDREC_INVALID_STATE);
  EXPECT_NE(std::string(shardrec_last_error()).find(words), std::string::npos)
      << shardrec_last_error();
}

}  // namespace shardrec::test
