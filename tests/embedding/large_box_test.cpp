// A box of more than 2^32 bytes: offsets are 64 bits wide everywhere.
#include <gtest/gtest.h>

#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

TEST(LargeBox, RowsBeyondFourGibibytesAreTrainedAndReadBack) {
  constexpr int64_t kDim = 64;
  constexpr int64_t kRows = (int64_t{1} << 24) + 1000;  // 4 GiB and 250 KiB
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    shardrec_model* model = nullptr;
    SR_OK(shardrec_model_create(nullptr, &model));
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_INIT, SHARDREC_INIT_ZEROS));
    SR_OK(shardrec_model_add_table(model, "large", kRows, kDim, options, nullptr));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_model_add_feature(model, 0, "id", SHARDREC_POOLING_SUM));
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER,
                                   SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD));
    SR_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, 1));
    SR_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_EPS, 0));
    SR_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    shardrec_topology* topology = nullptr;
    SR_OK(shardrec_topology_create(2, 2, nullptr, &topology));
    shardrec_plan* plan = nullptr;
    SR_OK(shardrec_plan_create_empty(model, topology, nullptr, &plan));
    SR_OK(add_box(plan, 0, 1, 0, kRows, 0, kDim));
    shardrec_collection* tables = nullptr;
    SR_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables));
    shardrec_lookup* lookup = nullptr;
    SR_OK(shardrec_lookup_create(tables, nullptr, &lookup));

    const std::vector<int64_t> touched = {0, kRows / 2, (int64_t{1} << 24) - 1, int64_t{1} << 24,
                                          kRows - 1};
    std::vector<int64_t> values = touched;
    std::vector<int64_t> lengths(touched.size(), 1);
    std::vector<float> out(touched.size() * kDim, -1);
    // Row i gets gradient +1 or -1: with AdaGrad of one step it moves by exactly 1 the other way.
    std::vector<float> gradient(out.size());
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = i / kDim % 2 == 0 ? 1.0F : -1.0F;
    const auto batch = static_cast<int64_t>(touched.size());
    const shardrec_tensor values_tensor = vector_of(values);
    const shardrec_tensor lengths_tensor = vector_of(lengths);
    const shardrec_tensor out_tensor = matrix(out.data(), batch, kDim);
    const shardrec_tensor gradient_tensor = matrix(gradient.data(), batch, kDim);
    SR_OK(begin_batch(lookup,
                      {.batch_size = batch, .values = &values_tensor, .lengths = &lengths_tensor}));
    SR_OK(shardrec_lookup_forward(lookup, 0, &out_tensor));
    EXPECT_EQ(out, std::vector<float>(out.size(), 0));
    SR_OK(shardrec_lookup_set_gradient(lookup, 0, &gradient_tensor));
    SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));

    SR_OK(begin_batch(lookup,
                      {.batch_size = batch, .values = &values_tensor, .lengths = &lengths_tensor}));
    SR_OK(shardrec_lookup_forward(lookup, 0, &out_tensor));
    for (size_t i = 0; i < touched.size(); ++i) {
      const float expected = i % 2 == 0 ? -1.0F : 1.0F;
      std::vector<float> row(kDim);
      const shardrec_tensor row_tensor = matrix(row.data(), 1, kDim);
      SR_OK(shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, touched[i], 1,
                                           &row_tensor));
      for (size_t c = 0; c < kDim; ++c) {
        EXPECT_EQ(out[i * kDim + c], expected) << "row " << touched[i];
        EXPECT_EQ(row[c], expected) << "row " << touched[i];
      }
    }
    // What 32-bit offsets would have hit instead.
    std::vector<float> row(kDim, 1);
    const shardrec_tensor row_tensor = matrix(row.data(), 1, kDim);
    SR_OK(shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, rank == 0 ? 1 : 999, 1,
                                         &row_tensor));
    EXPECT_EQ(row, std::vector<float>(kDim, 0));
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_topology_destroy(&topology);
    shardrec_model_destroy(&model);
  });
}

}  // namespace
}  // namespace shardrec::test
