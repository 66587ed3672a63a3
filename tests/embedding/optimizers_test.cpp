// Every optimizer and dtype, under random tilings: the bits of one rank where they are promised,
// and the float64 reference.
#include <gtest/gtest.h>

#include "embedding/comparison.h"
#include "embedding/variations.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

class Optimizers : public ::testing::TestWithParam<std::tuple<int, int>> {
 protected:
  shardrec_optimizer kind() const {
    return static_cast<shardrec_optimizer>(std::get<0>(GetParam()));
  }
  uint64_t seed() const {
    return static_cast<uint64_t>(std::get<0>(GetParam()) * 100 + std::get<1>(GetParam()));
  }
};

TEST_P(Optimizers, GiveTheOneRankBitsUnderRandomTilings) {
  std::mt19937_64 random(seed());
  Scenario scenario = random_scenario(random, 10);
  vary_optimizers(scenario, random, kind());
  if (std::get<1>(GetParam()) % 2 == 1) add_sequences(scenario, random);
  expect_all_promises(scenario, random);
}

TEST_P(Optimizers, AccumulateAndFreezeAlikeUnderRandomTilings) {
  std::mt19937_64 random(seed() + 10000);
  Scenario scenario = random_scenario(random, 10);
  vary_optimizers(scenario, random, kind());
  add_accumulation(scenario, random);
  expect_all_promises(scenario, random);
}

TEST_P(Optimizers, RoundStochasticallyAlikeUnderRandomTilings) {
  std::mt19937_64 random(seed() + 20000);
  Scenario scenario = random_scenario(random, 10);
  vary_optimizers(scenario, random, kind());
  for (TableSpec& table : scenario.tables) {
    if (table.dtype == SHARDREC_FLOAT32) table.dtype = SHARDREC_BFLOAT16;
    table.rounding = SHARDREC_ROUNDING_STOCHASTIC;
  }
  expect_all_promises(scenario, random, {.to_nearest = false});
}

TEST_P(Optimizers, ShardStatisticsFollowTheirBoxes) {
  std::mt19937_64 random(seed() + 30000);
  Scenario scenario = random_scenario(random, 10);
  scenario.optimizer = random_optimizer(random, kind());
  scenario.optimizer.shard_statistics = true;
  for (const int ranks : {1, 4}) {
    const Deal deal = random_deal(scenario, random, ranks);
    const Outcome run = train(scenario, deal);
    if (HasFatalFailure()) return;
    expect_reference(scenario, run, reference_train(scenario, run.initial, deal.plan));
  }
}

TEST_P(Optimizers, MixWithEveryKindOfInput) {
  std::mt19937_64 random(seed() + 40000);
  Scenario scenario = random_scenario(random, 10);
  vary_optimizers(scenario, random, kind());
  add_sequences(scenario, random);
  add_stray_ids(scenario, random);
  expect_all_promises(scenario, random, {.vary = [&](Deal& deal) {
                        deal.deduplicate = deal.ranks % 2 == 0;
                        for (TablePlanSpec& plan : deal.plan) {
                          if (plan.replicated)
                            plan.replication = static_cast<shardrec_replication>(1 + random() % 3);
                        }
                      }});
}

INSTANTIATE_TEST_SUITE_P(Kinds, Optimizers,
                         ::testing::Combine(::testing::Range(1, 9), ::testing::Range(0, seeds(2))));

}  // namespace
}  // namespace shardrec::test
