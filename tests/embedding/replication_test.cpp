// Tables replicated by rows or bits: equal to one rank up to rounding, replicas equal bit for bit,
// and the bytes that the choice is about.
#include <gtest/gtest.h>

#include <mutex>

#include "embedding/comparison.h"
#include "embedding/variations.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr shardrec_replication kWays[] = {SHARDREC_REPLICATION_ROWS, SHARDREC_REPLICATION_DENSE};

class Replicated : public ::testing::TestWithParam<int> {
 protected:
  // Every kind of input.
  Scenario scenario() {
    Scenario made = random_scenario(random_, 10);
    if (GetParam() % 2 == 0) add_sequences(made, random_);
    if (GetParam() % 3 == 0) add_stray_ids(made, random_);
    return made;
  }
  // Replicates tables by rows and bits, beside some that stay as they are.
  void replicate(Deal& deal) {
    for (size_t t = 0; t < deal.plan.size(); ++t) {
      if (t % 3 == 2) continue;
      deal.plan[t] = {.replicated = true, .boxes = {}, .replication = kWays[random_() % 2]};
    }
  }

  std::mt19937_64 random_{static_cast<uint64_t>(GetParam()) + 30000};
};

TEST_P(Replicated, TablesEqualOneRanksUpToRounding) {
  expect_all_promises(scenario(), random_, {.vary = [&](Deal& deal) { replicate(deal); }});
}

TEST_P(Replicated, TablesAreEqualOnAllRanksAndInEveryRunBitForBit) {
  const Scenario given = scenario();
  for (const int ranks : world_sizes()) {
    SCOPED_TRACE("ranks " + std::to_string(ranks));
    Deal deal = random_deal(given, random_, ranks);
    replicate(deal);
    deal.look_up_all = true;  // of replicated tables, a rank's own replica
    const Outcome run = train(given, deal);
    if (HasFatalFailure()) return;
    for (size_t rank = 0; rank < run.all_rows.size(); ++rank) {
      ASSERT_EQ(run.all_rows[rank].size(), run.all_rows[0].size());
      for (size_t output = 0; output < run.all_rows[0].size(); ++output) {
        expect_same_bits(run.all_rows[0][output], run.all_rows[rank][output],
                         "output " + std::to_string(output) + " of rank " + std::to_string(rank));
      }
    }
    // What rank 0 looked up is what it reads.
    const std::vector<float>& pooled = run.all_rows[0][0];
    for (size_t f = 0; f < given.features.size(); ++f) {
      if (given.features[f].sequence) continue;
      const auto t = static_cast<size_t>(given.features[f].table);
      const auto dim = static_cast<size_t>(given.tables[t].dim);
      for (size_t i = 0; i < run.tables[t].size(); ++i) {
        const auto at = i / dim * static_cast<size_t>(given.width()) +
                        static_cast<size_t>(given.column(f)) + i % dim;
        ASSERT_EQ(pooled[at], run.tables[t][i]) << "table " << t << " element " << i;
      }
    }
    const Outcome again = train(given, deal);
    EXPECT_EQ(run.tables, again.tables);
    EXPECT_EQ(run.states, again.states);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replicated, ::testing::Range(0, seeds(10)));

// Every bag has one id; rank r's ids are those given.
struct Bytes {
  int64_t input = 0;
  int64_t gradient = 0;
};

Bytes bytes_of(shardrec_replication way, int64_t rows, int64_t dim,
               const std::vector<std::vector<int64_t>>& ids) {
  Scenario scenario;
  scenario.tables = {{rows, dim}};
  scenario.features = {{0}};
  scenario.steps.resize(1);
  Deal deal;
  deal.ranks = static_cast<int>(ids.size());
  deal.plan = {{.replicated = true, .boxes = {}, .replication = way}};
  deal.share.resize(1);
  for (const auto& of_rank : ids) {
    deal.share[0].push_back(static_cast<int64_t>(of_rank.size()));
    for (const int64_t id : of_rank) {
      scenario.steps[0].push_back({.bags = {{id}},
                                   .weights = {{1}},
                                   .gradient = std::vector<float>(static_cast<size_t>(dim), 0.5F),
                                   .sequence_gradients = {{}}});
    }
  }
  const Outcome outcome = train(scenario, deal);
  return {outcome.bytes_input, outcome.bytes_gradient};
}

TEST(ReplicationBytes, AreThoseOfTheTouchedRows) {
  // Two ranks, 128 rows: slots of 64. Rank 0 touches rows 1, 2 (own) and 70; rank 1 touches 70.
  const std::vector<std::vector<int64_t>> ids = {{1, 2, 70, 70}, {70, 70, 70, 70}};
  const Bytes samples = bytes_of(SHARDREC_REPLICATION_SAMPLES, 128, 8, ids);
  const Bytes rows = bytes_of(SHARDREC_REPLICATION_ROWS, 128, 8, ids);
  const Bytes dense = bytes_of(SHARDREC_REPLICATION_DENSE, 128, 8, ids);
  // Headers of a gradient message without rows.
  const int64_t headers = 2 * 64;
  // Both ways of the two exchanges. Rank 0 sends row 70 to rank 1, and then its slot's rows 1, 2;
  // rank 1 sends nothing of the slot of rank 0, then row 70. A count, offsets, gradients of 32
  // bytes.
  EXPECT_EQ(rows.gradient - headers, (8 + 8 + 32) + (8 + 8 + 64) + 8 + (8 + 8 + 32));
  EXPECT_EQ(dense.gradient - headers, (8 + 8 + 32) + (8 + 8 + 64) + (8 + 8) + (8 + 8 + 32));
  EXPECT_EQ(samples.gradient - headers, 8 * 32);
  EXPECT_LT(rows.input, samples.input);
  EXPECT_EQ(rows.input, dense.input);
}

TEST(ReplicationBytes, OfThePlansChoiceAreTheLeast) {
  std::mt19937_64 random(3);
  for (const int64_t rows : {3, 200, 20000}) {
    for (const size_t batch : {4, 300}) {
      std::vector<std::vector<int64_t>> ids(4);
      for (auto& of_rank : ids) {
        for (size_t i = 0; i < batch; ++i) {
          of_rank.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
        }
      }
      shardrec_model* model = nullptr;
      SR_OK(shardrec_model_create(nullptr, &model));
      SR_OK(shardrec_model_add_table(model, "t", rows, 16, nullptr, nullptr));
      SR_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
      shardrec_topology* topology = nullptr;
      SR_OK(shardrec_topology_create(4, 4, nullptr, &topology));
      shardrec_options* options = nullptr;
      SR_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
      SR_OK(shardrec_options_set_text(options, SHARDREC_OPTION_SHARDING, "data_parallel"));
      SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_BATCH_SIZE,
                                     static_cast<int64_t>(batch)));
      shardrec_plan* plan = nullptr;
      SR_OK(shardrec_plan_create(model, topology, options, &plan));
      char* json = nullptr;
      SR_OK(shardrec_plan_to_json(plan, &json));
      const std::string text(json);
      shardrec_text_free(json);
      shardrec_plan_destroy(&plan);
      shardrec_options_destroy(&options);
      shardrec_topology_destroy(&topology);
      shardrec_model_destroy(&model);

      const auto total = [&](shardrec_replication way) {
        const Bytes bytes = bytes_of(way, rows, 16, ids);
        return bytes.input + bytes.gradient;
      };
      const auto chosen = text.find("\"replication\": \"rows\"") != std::string::npos
                              ? SHARDREC_REPLICATION_ROWS
                          : text.find("\"replication\": \"dense\"") != std::string::npos
                              ? SHARDREC_REPLICATION_DENSE
                              : SHARDREC_REPLICATION_SAMPLES;
      SCOPED_TRACE(text);
      // Headers and padding are not part of the estimate.
      constexpr int64_t kSlack = 4 * 4 * 64;
      EXPECT_LE(total(chosen), total(SHARDREC_REPLICATION_SAMPLES) + kSlack);
      EXPECT_LE(total(chosen), total(SHARDREC_REPLICATION_ROWS) + kSlack);
      EXPECT_LE(total(chosen), total(SHARDREC_REPLICATION_DENSE) + kSlack);
    }
  }
}

}  // namespace
}  // namespace shardrec::test
