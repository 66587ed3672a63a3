// The promises of the numbers for every kind of input: sequences beside pooled features on one
// table, ids out of range.
#include <gtest/gtest.h>

#include "embedding/comparison.h"
#include "embedding/variations.h"

namespace shardrec::test {
namespace {

// One rank against the float64 reference, then random tilings against one rank.
void expect_all_promises(const Scenario& scenario, std::mt19937_64& random) {
  const Deal alone = one_rank(scenario);
  const Outcome one = train(scenario, alone);
  if (::testing::Test::HasFatalFailure()) return;
  const ReferenceOutcome reference = reference_train(scenario, one.initial, alone.plan);
  expect_reference(scenario, one, reference);
  for (const int ranks : {1, 2, 3, 4, 8}) {
    SCOPED_TRACE("ranks " + std::to_string(ranks));
    const Deal deal = random_deal(scenario, random, ranks);
    const Outcome many = train(scenario, deal);
    if (::testing::Test::HasFatalFailure()) return;
    expect_promises(scenario, deal, one, many, reference);
    EXPECT_EQ(many.out_of_range, reference.out_of_range);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

class Inputs : public ::testing::TestWithParam<int> {};

TEST_P(Inputs, SequencesGiveTheOneRankBitsAndShareTheUpdateOfTheirTable) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 10000);
  Scenario scenario = random_scenario(random, 6);
  add_sequences(scenario, random);
  expect_all_promises(scenario, random);
}

TEST_P(Inputs, SequencesUnderNamedKindsGiveTheOneRankBits) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 11000);
  Scenario scenario = random_scenario(random, 4);
  add_sequences(scenario, random);
  const Outcome one = train(scenario, one_rank(scenario));
  if (HasFatalFailure()) return;
  const ReferenceOutcome reference =
      reference_train(scenario, one.initial, one_rank(scenario).plan);
  for (int kind = SHARDREC_SHARDING_AUTO; kind <= SHARDREC_SHARDING_MIXED; ++kind) {
    const int ranks = std::vector<int>{2, 3, 4, 8}[static_cast<size_t>((GetParam() + kind) % 4)];
    SCOPED_TRACE("kind " + std::to_string(kind) + " ranks " + std::to_string(ranks));
    const Deal deal = named_deal(scenario, random, ranks, std::max(1, ranks / 2),
                                 static_cast<shardrec_sharding>(kind));
    const Outcome many = train(scenario, deal);
    if (HasFatalFailure()) return;
    expect_promises(scenario, deal, one, many, reference);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Inputs, IdsOutOfRangeAreDroppedOrClampedAlikeUnderEveryPlan) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 12000);
  Scenario scenario = random_scenario(random, 6);
  if (GetParam() % 2 == 0) add_sequences(scenario, random);
  add_stray_ids(scenario, random);
  expect_all_promises(scenario, random);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Inputs, ::testing::Range(0, 10));

}  // namespace
}  // namespace shardrec::test
