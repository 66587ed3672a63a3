// A table one row of which very many ids name: the bits are those of one thread, under every plan.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::embedding {
namespace {

// A table of 40 rows after one step; 12,000 of 20,000 ids name row 23.
constexpr int64_t kRows = 40;
constexpr int64_t kDim = 8;
constexpr int64_t kSamples = 20000;
constexpr int64_t kHot = 23;

int64_t id_of(int64_t sample) { return sample % 5 < 3 ? kHot : sample % kRows; }
float gradient_of(int64_t sample, int64_t column) {
  return 0x1p-10F * static_cast<float>(1 + (sample + column) % 7);
}

struct Trained {
  std::vector<float> before;
  std::vector<float> after;
};

Trained train(int ranks, const char* sharding, const char* optimizer, double max_norm) {
  Trained trained;
  test::run_ranks(ranks, ranks, [&](int rank, shardrec_comm* comm) {
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_OPTIMIZER, optimizer));
    SR_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_MAX_NORM, max_norm));
    shardrec_model* model = nullptr;
    SR_OK(shardrec_model_create(nullptr, &model));
    int32_t table = 0;
    SR_OK(shardrec_model_add_table(model, "t", kRows, kDim, nullptr, &table));
    SR_OK(shardrec_model_add_feature(model, table, "t", SHARDREC_POOLING_SUM));
    SR_OK(shardrec_model_set_optimizer(model, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    shardrec_topology* topology = nullptr;
    SR_OK(shardrec_topology_create(ranks, ranks, nullptr, &topology));
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_SHARDING, sharding));
    shardrec_plan* plan = nullptr;
    SR_OK(shardrec_plan_create(model, topology, options, &plan));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 3));
    SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_GRADIENT_DIVISOR, "none"));
    shardrec_collection* tables = nullptr;
    SR_OK(shardrec_collection_create(comm, nullptr, model, plan, options, &tables));
    shardrec_options_destroy(&options);
    shardrec_lookup* lookup = nullptr;
    SR_OK(shardrec_lookup_create(tables, nullptr, &lookup));

    const int64_t first = kSamples * rank / ranks;
    const int64_t last = kSamples * (rank + 1) / ranks;
    std::vector<int64_t> ids;
    std::vector<float> gradient;
    for (int64_t sample = first; sample < last; ++sample) {
      ids.push_back(id_of(sample));
      for (int64_t c = 0; c < kDim; ++c) gradient.push_back(gradient_of(sample, c));
    }
    std::vector<int64_t> lengths(ids.size(), 1);
    std::vector<float> out(gradient.size());
    const auto read = [&](std::vector<float>& weights) {
      std::vector<float> all(static_cast<size_t>(kRows * kDim));
      const shardrec_tensor view = test::matrix(all.data(), kRows, kDim);
      SR_OK(shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, kRows, &view));
      if (rank == 0) weights = all;
    };
    read(trained.before);
    const shardrec_tensor ids_view = test::vector_of(ids);
    const shardrec_tensor lengths_view = test::vector_of(lengths);
    SR_OK(begin_batch(lookup,
                      {.batch_size = last - first, .values = &ids_view, .lengths = &lengths_view}));
    const shardrec_tensor out_view = test::matrix(out.data(), last - first, kDim);
    SR_OK(shardrec_lookup_forward(lookup, 0, &out_view));
    const shardrec_tensor gradient_view = test::matrix(gradient.data(), last - first, kDim);
    SR_OK(shardrec_lookup_set_gradient(lookup, 0, &gradient_view));
    SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
    read(trained.after);
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_topology_destroy(&topology);
    shardrec_model_destroy(&model);
  });
  return trained;
}

TEST(HotRowOfATable, TakesTheStepOfItsWholeGradient) {
  const Trained trained = train(1, "table_wise", "sgd", 0);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t c = 0; c < kDim; ++c) {
      double sum = 0;
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        if (id_of(sample) == row) sum += static_cast<double>(gradient_of(sample, c));
      }
      const auto at = static_cast<size_t>(row * kDim + c);
      EXPECT_NEAR(trained.after[at], static_cast<double>(trained.before[at]) - 0.01 * sum, 1e-6)
          << "row " << row << ", column " << c;
    }
  }
}

TEST(HotRowOfATable, IsTheSameWhereItsColumnsAreCut) {
  for (const char* optimizer : {"rowwise_adagrad", "lamb"}) {
    const Trained whole = train(1, "table_wise", optimizer, 0);
    const Trained cut = train(2, "column_wise", optimizer, 0);
    ASSERT_EQ(whole.before, cut.before);
    for (size_t i = 0; i < whole.after.size(); ++i) {
      EXPECT_NEAR(whole.after[i], cut.after[i], 1e-6) << optimizer << ", element " << i;
    }
    EXPECT_NE(whole.before[kHot * kDim], whole.after[kHot * kDim]);
  }
}

TEST(HotRowOfATable, KeepsMaxNorm) {
  constexpr double kMaxNorm = 0.01;
  for (const int ranks : {1, 2}) {
    const Trained trained = train(ranks, "column_wise", "sgd", kMaxNorm);
    for (int64_t row = 0; row < kRows; ++row) {
      if (row % 5 < 3) continue;  // no id names it
      double squares = 0;
      for (int64_t c = 0; c < kDim; ++c) {
        const double w = trained.after[static_cast<size_t>(row * kDim + c)];
        squares += w * w;
      }
      EXPECT_NEAR(std::sqrt(squares), kMaxNorm, 1e-6) << "row " << row << ", ranks " << ranks;
    }
  }
}

}  // namespace
}  // namespace shardrec::embedding
