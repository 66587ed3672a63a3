// What a pair of ranks that exchange little takes of memory: malloc's own count over three numbers of ranks, of which
// the square is told apart from what each rank and the whole take.
#include <gtest/gtest.h>

#include <barrier>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "embedding/room.h"
#include "plan/plan.h"
#include "support/bytes_in_use.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

// 26 tables of 16 columns, two lookups in flight, as `shardrec train` has them.
constexpr int kTables = 26;
constexpr int64_t kRows = 12000;
constexpr int64_t kDim = 16;

struct RankTables {
  shardrec_model* model = nullptr;
  shardrec_collection* collection = nullptr;
  shardrec_lookup* lookups[2] = {};

  void create(shardrec_comm* comm, shardrec_sharding sharding) {
    SR_OK(shardrec_model_create(nullptr, &model));
    for (int t = 0; t < kTables; ++t) {
      const std::string name = "C" + std::to_string(t + 1);
      SR_OK(shardrec_model_add_table(model, name.c_str(), kRows, kDim, nullptr, nullptr));
      SR_OK(shardrec_model_add_feature(model, t, name.c_str(), SHARDREC_POOLING_SUM));
    }
    shardrec_plan* plan = nullptr;
    shardrec_options* options = nullptr;
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING, sharding));
    SR_OK(shardrec_plan_collective(comm, nullptr, model, options, &plan));
    shardrec_options_destroy(&options);
    SR_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options));
    SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 1));
    SR_OK(shardrec_collection_create(comm, nullptr, model, plan, options, &collection));
    shardrec_options_destroy(&options);
    // The collection has its own, of which all ranks together have one.
    shardrec_plan_destroy(&plan);
    for (shardrec_lookup*& lookup : lookups) {
      SR_OK(shardrec_lookup_create(collection, nullptr, &lookup));
    }
  }
  void destroy() {
    for (shardrec_lookup*& lookup : lookups) shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&collection);
    shardrec_model_destroy(&model);
  }
};

// A sample per rank and lookup.
void train(RankTables& tables, int rank) {
  std::mt19937 random(static_cast<uint32_t>(rank));
  std::vector<int64_t> values(kTables);
  std::vector<int64_t> lengths(kTables, 1);
  std::vector<float> out(static_cast<size_t>(kTables * kDim));
  const shardrec_tensor values_tensor = vector_of(values);
  const shardrec_tensor lengths_tensor = vector_of(lengths);
  const shardrec_tensor out_tensor = matrix(out.data(), 1, kTables * kDim);
  for (int step = 0; step < 4; ++step) {
    for (int64_t& id : values) id = static_cast<int64_t>(random() % kRows);
    for (shardrec_lookup* lookup : tables.lookups) {
      SR_OK(begin_batch(lookup,
                        {.batch_size = 1, .values = &values_tensor, .lengths = &lengths_tensor}));
    }
    for (shardrec_lookup* lookup : tables.lookups) {
      SR_OK(shardrec_lookup_forward(lookup, 0, &out_tensor));
      SR_OK(shardrec_lookup_set_gradient(lookup, 0, &out_tensor));
      SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
    }
  }
}

// What the check at creation takes the steps of a rank to need.
double booked_steps(const RankTables& tables) {
  shardrec_plan* of_tables = nullptr;
  EXPECT_EQ(shardrec_collection_plan(tables.collection, &of_tables), SHARDREC_OK);
  char* model_text = nullptr;
  char* plan_text = nullptr;
  EXPECT_EQ(shardrec_model_to_json(tables.model, &model_text), SHARDREC_OK);
  EXPECT_EQ(shardrec_plan_to_json(of_tables, &plan_text), SHARDREC_OK);
  shardrec_plan_destroy(&of_tables);
  const plan::Model model = plan::model_from_json(model_text);
  const embedding::Layout layout(model, plan::plan_from_json(model, plan_text), 0);
  shardrec_text_free(model_text);
  shardrec_text_free(plan_text);
  return static_cast<double>(embedding::step_bytes(layout, 2));
}

// Of the process, while so many ranks have trained; of that, what was booked for steps.
struct Bytes {
  double taken = 0;
  double booked = 0;
};
Bytes bytes_of(int ranks, shardrec_sharding sharding) {
  const int64_t before = bytes_in_use();
  int64_t trained = 0;
  double booked = 0;
  std::barrier meeting(ranks);
  run_ranks(ranks, ranks, [&](int rank, shardrec_comm* comm) {
    RankTables tables;
    tables.create(comm, sharding);
    train(tables, rank);
    meeting.arrive_and_wait();
    if (rank == 0) {
      trained = bytes_in_use();
      booked = ranks * booked_steps(tables);
    }
    meeting.arrive_and_wait();
    tables.destroy();
  });
  return {static_cast<double>(trained - before), booked};
}

// The factor of the square in a + b ranks + c ranks^2.
double of_square(int ranks, double once, double twice, double thrice) {
  return (thrice - 2 * twice + once) / (2.0 * ranks * ranks);
}

struct Case {
  const char* name = nullptr;
  shardrec_sharding sharding = SHARDREC_SHARDING_AUTO;
  double limit = 0;  // bytes of a pair
};

class MemoryPerPair : public ::testing::TestWithParam<Case> {};

TEST_P(MemoryPerPair, IsLittle) {
  if (SHARDREC_SANITIZED != 0) GTEST_SKIP() << "a sanitizer has a malloc of its own";
  constexpr int kRanks = 24;
  const Case& c = GetParam();
  bytes_of(2, c.sharding);  // what the process keeps for good
  Bytes bytes[3];
  for (int n = 0; n < 3; ++n) bytes[n] = bytes_of((n + 1) * kRanks, c.sharding);
  const double per_pair = of_square(kRanks, bytes[0].taken, bytes[1].taken, bytes[2].taken);
  const double booked = of_square(kRanks, bytes[0].booked, bytes[1].booked, bytes[2].booked);
  std::printf("%.0f bytes for each pair of ranks, %.0f of them booked; %.1f MB with %d ranks\n",
              per_pair, booked, bytes[2].taken / 1e6, 3 * kRanks);
  EXPECT_LT(per_pair, c.limit);
  EXPECT_LT(booked, per_pair);
  EXPECT_GT(booked, per_pair / 3);
}

// Row-wise, a rank has a block for every table of every peer, and a sample fills few of them. Mixed sharding
// replicates some tables by samples: of these, ids and gradients go to all ranks.
INSTANTIATE_TEST_SUITE_P(Plans, MemoryPerPair,
                         ::testing::Values(Case{"RowWise", SHARDREC_SHARDING_ROW_WISE, 4096},
                                           Case{"Mixed", SHARDREC_SHARDING_MIXED, 12288}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace shardrec::test
