// One rank with a table on a device or on the CPU, and batches for it.
#pragma once

#include <vector>

#include "capi/capi_test.h"
#include "support/structs.h"

namespace shardrec::test {

inline constexpr int64_t kRows = 60;
inline constexpr int64_t kDim = 24;
inline constexpr int64_t kBatch = 40;

// One rank with a table, on a device or on the CPU.
class Rank {
 public:
  explicit Rank(int64_t device, bool weight_gradient = false) {
    EXPECT_OK(shardrec_local_create(1, 1, nullptr, group_.out()));
    EXPECT_OK(shardrec_comm_create_local(group_, 0, nullptr, comm_.out()));
    EXPECT_OK(shardrec_model_create(nullptr, model_.out()));
    Options optimizer;
    EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, optimizer.out()));
    EXPECT_OK(shardrec_options_set_i64(optimizer, SHARDREC_OPTION_OPTIMIZER,
                                       SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD));
    EXPECT_OK(shardrec_model_set_optimizer(model_, SHARDREC_ALL_TABLES, optimizer));
    int32_t index = 0;
    EXPECT_OK(shardrec_model_add_table(model_, "t", kRows, kDim, nullptr, &index));
    EXPECT_OK(shardrec_model_add_feature(model_, index, "f", SHARDREC_POOLING_MEAN));
    EXPECT_OK(shardrec_plan_collective(comm_, nullptr, model_, nullptr, plan_.out()));
    Options options;
    EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, options.out()));
    EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DEVICE, device));
    status_ = shardrec_collection_create(comm_, nullptr, model_, plan_, options, &tables_);
    if (status_ == SHARDREC_OK) {
      Options of_lookup;
      EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_LOOKUP, of_lookup.out()));
      EXPECT_OK(shardrec_options_set_i64(of_lookup, SHARDREC_OPTION_WEIGHT_GRADIENT,
                                         weight_gradient ? 1 : 0));
      EXPECT_OK(shardrec_lookup_create(tables_, of_lookup, &lookup_));
    }
  }
  ~Rank() {
    shardrec_lookup_destroy(&lookup_);
    shardrec_collection_destroy(&tables_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  shardrec_status status() const { return status_; }
  shardrec_collection* tables() const { return tables_; }
  shardrec_lookup* lookup() const { return lookup_; }

  void step(const shardrec_tensor& ids, const shardrec_tensor& lengths, const shardrec_tensor& out,
            const shardrec_tensor& gradient) {
    ASSERT_OK(begin_batch(lookup_, {.batch_size = kBatch, .values = &ids, .lengths = &lengths}));
    ASSERT_OK(shardrec_lookup_forward(lookup_, 0, &out));
    ASSERT_OK(shardrec_lookup_set_gradient(lookup_, 0, &gradient));
    ASSERT_OK(shardrec_lookup_backward(lookup_, SHARDREC_UPDATE_APPLY));
  }

  std::vector<float> rows() {
    std::vector<float> all(kRows * kDim);
    shardrec_tensor tensor{};
    EXPECT_OK(shardrec_tensor_matrix(all.data(), SHARDREC_FLOAT32, kRows, kDim, &tensor));
    EXPECT_OK(
        shardrec_collection_read_range(tables_, 0, SHARDREC_TABLE_WEIGHTS, 0, kRows, &tensor));
    return all;
  }

 private:
  Local group_;
  Comm comm_;
  Model model_;
  Plan plan_;
  shardrec_collection* tables_ = nullptr;
  shardrec_lookup* lookup_ = nullptr;
  shardrec_status status_ = SHARDREC_OK;
};

struct Batch {
  Batch() {
    uint32_t state = 1;
    const auto next = [&](uint32_t below) {
      state = state * 1664525U + 1013904223U;
      return (state >> 8) % below;
    };
    for (int64_t b = 0; b < kBatch; ++b) {
      lengths.push_back(static_cast<int32_t>(next(5)));
      for (int32_t i = 0; i < lengths.back(); ++i) ids.push_back(next(kRows));
    }
    for (int64_t i = 0; i < kBatch * kDim; ++i) {
      gradient.push_back(static_cast<float>(next(2001)) / 1000 - 1);
    }
  }
  std::vector<int64_t> ids;
  std::vector<int32_t> lengths;
  std::vector<float> gradient;
  std::vector<float> out = std::vector<float>(kBatch * kDim);
};

inline shardrec_tensor vector_at(void* data, shardrec_dtype dtype, size_t size, bool on_device) {
  shardrec_tensor tensor{};
  EXPECT_OK(shardrec_tensor_vector(data, dtype, static_cast<int64_t>(size), &tensor));
  if (on_device) tensor.device_type = SHARDREC_DEVICE_CUDA;
  return tensor;
}
inline shardrec_tensor matrix_at(void* data, bool on_device) {
  shardrec_tensor tensor{};
  EXPECT_OK(shardrec_tensor_matrix(data, SHARDREC_FLOAT32, kBatch, kDim, &tensor));
  if (on_device) tensor.device_type = SHARDREC_DEVICE_CUDA;
  return tensor;
}

}  // namespace shardrec::test
