// The option NON_FINITE of a collection: a NaN or an infinity in weights of ids or in output gradients
// is refused on all ranks with its place, or its step is skipped by all, and nothing has changed.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

constexpr int kRanksOfNonFinite = 3;

// Two pooled features of a table each, 2 and 3 columns, and a sequence of the second one.
struct Collection {
  Collection(shardrec_comm* comm, const char* non_finite, bool borrow) {
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model));
    SR_EXPECT_OK(shardrec_model_add_table(model, "t", 10, 2, nullptr, nullptr));
    SR_EXPECT_OK(shardrec_model_add_table(model, "u", 10, 3, nullptr, nullptr));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 1, "g", SHARDREC_POOLING_SUM));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 1, "s", SHARDREC_POOLING_NONE));
    SR_EXPECT_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan));
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_NON_FINITE, non_finite));
    SR_EXPECT_OK(shardrec_collection_create(comm, nullptr, model, plan, options, &tables));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_LOOKUP, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_BORROW, borrow ? 1 : 0));
    SR_EXPECT_OK(shardrec_lookup_create(tables, options, &lookup));
    shardrec_options_destroy(&options);
  }
  ~Collection() {
    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
  }

  // Two samples: f has {1, 2} and {3}, g {4} and {5, 6}, s {7} and {8}.
  shardrec_status forward() {
    const shardrec_tensor ids = vector_of(values);
    const shardrec_tensor counts = vector_of(lengths);
    const shardrec_tensor factors = vector_of(weights);
    SR_EXPECT_OK(begin_batch(
        lookup, {.batch_size = 2, .values = &ids, .lengths = &counts, .weights = &factors}));
    const shardrec_tensor out = matrix(pooled.data(), 2, 5);
    return shardrec_lookup_forward(lookup, 0, &out);
  }
  shardrec_status backward() {
    const shardrec_tensor of_pooled = matrix(pooled_gradient.data(), 2, 5);
    const shardrec_tensor of_rows = matrix(row_gradient.data(), 2, 3);
    SR_EXPECT_OK(shardrec_lookup_set_gradient(lookup, 0, &of_pooled));
    SR_EXPECT_OK(shardrec_lookup_set_gradient(lookup, 1, &of_rows));
    return shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY);
  }
  double counted(int32_t table) const {
    double value = -1;
    SR_EXPECT_OK(shardrec_collection_stat(tables, SHARDREC_STAT_TABLE_NON_FINITE, table, &value));
    return value;
  }
  int64_t steps() const {
    int64_t value = -1;
    SR_EXPECT_OK(shardrec_collection_step(tables, &value));
    return value;
  }

  std::vector<int64_t> values = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int64_t> lengths = {2, 1, 1, 2, 1, 1};
  std::vector<float> weights = std::vector<float>(8, 1.0F);
  std::vector<float> pooled = std::vector<float>(10);
  std::vector<float> pooled_gradient = std::vector<float>(10, 0.5F);
  std::vector<float> row_gradient = std::vector<float>(6, 0.25F);
  shardrec_model* model = nullptr;
  shardrec_plan* plan = nullptr;
  shardrec_collection* tables = nullptr;
  shardrec_lookup* lookup = nullptr;
};

// What the last error says of the first bad number.
void expect_reported(const char* feature, const char* table, int64_t position, const char* what) {
  const std::string sentence = shardrec_last_error();
  for (const std::string& part :
       {std::string("rank 1"), std::string(what), "feature \"" + std::string(feature) + "\"",
        "table \"" + std::string(table) + "\""}) {
    EXPECT_NE(sentence.find(part), std::string::npos) << part << " in: " << sentence;
  }
  int64_t number = -1;
  SR_EXPECT_OK(shardrec_last_error_i64(SHARDREC_ERROR_POSITION, &number));
  EXPECT_EQ(number, position) << sentence;
  SR_EXPECT_OK(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &number));
  EXPECT_EQ(number, 1) << sentence;
}

class NonFinite : public testing::TestWithParam<bool> {};  // borrowed?

TEST_P(NonFinite, WeightsAreRefusedOnAllRanks) {
  run_ranks(kRanksOfNonFinite, kRanksOfNonFinite, [](int rank, shardrec_comm* comm) {
    Collection own(comm, "error", GetParam());
    for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      if (rank == 1) own.weights[4] = bad;
      EXPECT_EQ(own.forward(), SHARDREC_INVALID_BATCH);
      expect_reported("g", "u", 4, "weights[4] is NaN or infinite");
      own.weights[4] = 1;
      SR_EXPECT_OK(own.forward());
      SR_EXPECT_OK(own.backward());
    }
    EXPECT_EQ(own.counted(0), 0);
    EXPECT_EQ(own.counted(1), rank == 1 ? 3 : 0);
    EXPECT_EQ(own.steps(), 3);
  });
}

TEST_P(NonFinite, GradientsAreRefusedOnAllRanks) {
  run_ranks(kRanksOfNonFinite, kRanksOfNonFinite, [](int rank, shardrec_comm* comm) {
    Collection own(comm, "error", GetParam());
    SR_EXPECT_OK(own.forward());
    if (rank == 1) own.pooled_gradient[6] = -HUGE_VALF;
    EXPECT_EQ(own.backward(), SHARDREC_INVALID_BATCH);
    expect_reported("f", "t", 1, "the gradient of output 0 at row 1, column 1");
    own.pooled_gradient[6] = 0.5F;
    SR_EXPECT_OK(own.forward());
    if (rank == 1) own.row_gradient[5] = std::nanf("");
    EXPECT_EQ(own.backward(), SHARDREC_INVALID_BATCH);
    expect_reported("s", "u", 1, "the gradient of output 1 at row 1, column 2");
    own.row_gradient[5] = 0.25F;
    EXPECT_EQ(own.steps(), 0);
    EXPECT_EQ(own.counted(0), rank == 1 ? 1 : 0);
    EXPECT_EQ(own.counted(1), rank == 1 ? 1 : 0);
    SR_EXPECT_OK(own.forward());
    SR_EXPECT_OK(own.backward());
    EXPECT_EQ(own.steps(), 1);
  });
}

TEST_P(NonFinite, StepsAreSkippedByAllRanksAndChangeNothing) {
  run_ranks(kRanksOfNonFinite, kRanksOfNonFinite, [](int rank, shardrec_comm* comm) {
    Collection own(comm, "skip", GetParam());
    SR_EXPECT_OK(own.forward());
    const std::vector<float> before = own.pooled;
    if (rank == 1) own.pooled_gradient[9] = HUGE_VALF;
    SR_EXPECT_OK(own.backward());
    own.pooled_gradient[9] = 0.5F;
    if (rank == 1) own.weights[0] = std::nanf("");
    SR_EXPECT_OK(own.forward());
    SR_EXPECT_OK(own.backward());
    own.weights[0] = 1;
    EXPECT_EQ(own.steps(), 0);
    SR_EXPECT_OK(own.forward());
    EXPECT_EQ(own.pooled, before);
    EXPECT_EQ(own.counted(0), rank == 1 ? 1 : 0);
    EXPECT_EQ(own.counted(1), rank == 1 ? 1 : 0);
    SR_EXPECT_OK(own.backward());
    EXPECT_EQ(own.steps(), 1);
    SR_EXPECT_OK(own.forward());
    for (const float value : own.pooled) EXPECT_TRUE(std::isfinite(value));
    EXPECT_NE(own.pooled, before);
  });
}

INSTANTIATE_TEST_SUITE_P(Borrowed, NonFinite, testing::Bool());

TEST(NonFiniteOption, IsTheSameOnAllRanks) {
  run_ranks(kRanksOfNonFinite, kRanksOfNonFinite, [](int rank, shardrec_comm* comm) {
    shardrec_model* model = nullptr;
    SR_OK(shardrec_model_create(nullptr, &model));
    SR_OK(shardrec_model_add_table(model, "t", 10, 2, nullptr, nullptr));
    SR_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    shardrec_plan* plan = nullptr;
    SR_OK(shardrec_plan_collective(comm, nullptr, model, nullptr, &plan));
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_NON_FINITE,
                                    rank == 2 ? "skip" : "error"));
    shardrec_collection* tables = nullptr;
    EXPECT_EQ(shardrec_collection_create(comm, nullptr, model, plan, options, &tables),
              SHARDREC_DISAGREEMENT);
    const std::string sentence = shardrec_last_error();
    EXPECT_NE(sentence.find("NON_FINITE"), std::string::npos) << sentence;
    shardrec_options_destroy(&options);
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
  });
}

}  // namespace
}  // namespace shardrec::test
