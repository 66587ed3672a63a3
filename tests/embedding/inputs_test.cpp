// The promises of the numbers for every kind of input: sequences beside pooled features on one
// table, ids out of range.
#include <gtest/gtest.h>

#include "embedding/comparison.h"
#include "embedding/half_matrix.h"
#include "embedding/variations.h"

namespace shardrec::test {
namespace {

class Inputs : public ::testing::TestWithParam<int> {};

TEST_P(Inputs, SequencesGiveTheOneRankBitsAndShareTheUpdateOfTheirTable) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 10000);
  Scenario scenario = random_scenario(random, 10);
  add_sequences(scenario, random);
  expect_all_promises(scenario, random);
}

TEST_P(Inputs, SequencesUnderNamedKindsGiveTheOneRankBits) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 11000);
  Scenario scenario = random_scenario(random, 10);
  add_sequences(scenario, random);
  expect_promises_of_named_kinds(scenario, random, GetParam());
}

TEST_P(Inputs, IdsOutOfRangeAreDroppedOrClampedAlikeUnderEveryPlan) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 12000);
  Scenario scenario = random_scenario(random, 10);
  if (GetParam() % 2 == 0) add_sequences(scenario, random);
  add_stray_ids(scenario, random);
  expect_all_promises(scenario, random);
}

TEST_P(Inputs, GradientsOfWeightsAreThoseOfTheRowsBeforeTheStep) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 17000);
  Scenario scenario = random_scenario(random, 10);
  if (GetParam() % 2 == 0) add_sequences(scenario, random);
  if (GetParam() % 3 == 0) add_stray_ids(scenario, random);
  if (GetParam() % 4 == 1) {  // nothing to undo
    scenario.divisor = 1;
    scenario.optimizer.max_gradient = 0;
  }
  Deal alone = one_rank(scenario);
  alone.weight_gradient = true;
  const Outcome one = train(scenario, alone);
  if (HasFatalFailure()) return;
  const ReferenceOutcome reference = reference_train(scenario, one.initial, alone.plan);
  const auto compare = [&](const Outcome& run, const Deal& deal) {
    for (size_t s = 0; s < scenario.steps.size(); ++s) {
      for (size_t i = 0; i < scenario.steps[s].size(); ++i) {
        for (size_t f = 0; f < scenario.features.size(); ++f) {
          const auto t = static_cast<size_t>(scenario.features[f].table);
          const bool whole_rows =
              std::all_of(deal.plan[t].boxes.begin(), deal.plan[t].boxes.end(),
                          [&](const BoxSpec& box) { return box.cols == scenario.tables[t].dim; });
          const auto& values = run.weight_gradients[s][i][f];
          const auto& expected = reference.weight_gradients[s][i][f];
          ASSERT_EQ(values.size(), expected.size());
          for (size_t n = 0; n < values.size(); ++n) {
            ASSERT_NEAR(values[n], expected[n],
                        1e-5 + 3e-4 * reference.weight_magnitudes[s][i][f][n])
                << "step " << s << " sample " << i << " feature " << f << " id " << n;
          }
          if (whole_rows) expect_same_bits(one.weight_gradients[s][i][f], values, "of weights");
        }
      }
    }
  };
  compare(one, alone);
  if (HasFatalFailure()) return;
  for (const int ranks : {1, 2, 3, 8}) {
    SCOPED_TRACE("ranks " + std::to_string(ranks));
    Deal deal = random_deal(scenario, random, ranks);
    deal.weight_gradient = true;
    if (GetParam() % 2 == 1) deal.form = BatchForm::kVariableIdentity;
    const Outcome many = train(scenario, deal);
    if (HasFatalFailure()) return;
    compare(many, deal);
    if (HasFatalFailure()) return;
    expect_promises(scenario, deal, one, many, reference);
    if (HasFatalFailure()) return;
  }
}

TEST_P(Inputs, AFeatureMayBeAbsentFromABatch) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 16000);
  Scenario scenario = random_scenario(random, 10);
  if (GetParam() % 2 == 0) add_sequences(scenario, random);
  for (auto& step : scenario.steps) {
    const size_t absent = random() % scenario.features.size();
    for (Sample& sample : step) {
      sample.bags[absent].clear();
      sample.weights[absent].clear();
      if (!sample.sequence_gradients.empty()) sample.sequence_gradients[absent].clear();
    }
  }
  expect_all_promises(scenario, random);
}

TEST_P(Inputs, ABatchSizePerFeatureWithBagsOfTheirOwnIsThePlainBatch) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 13000);
  Scenario scenario = random_scenario(random, 10);
  if (GetParam() % 2 == 0) add_sequences(scenario, random);
  if (GetParam() % 3 == 0) add_stray_ids(scenario, random);
  expect_all_promises(scenario, random,
                      {.vary = [](Deal& deal) { deal.form = BatchForm::kVariableIdentity; }});
}

TEST_P(Inputs, BagsGivenOnceTrainAlikeUnderEveryPlan) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 14000);
  Scenario scenario = random_scenario(random, 10);
  if (GetParam() % 2 == 0) add_sequences(scenario, random);
  add_repeated_bags(scenario, random);
  if (GetParam() % 3 == 0) add_stray_ids(scenario, random);
  // Samples are summed before they are clamped, which the reference does not know.
  scenario.optimizer.max_gradient = 0;
  for (const int ranks : {1, 2, 3, 8}) {
    SCOPED_TRACE("ranks " + std::to_string(ranks));
    Deal first = random_deal(scenario, random, ranks);
    for (TablePlanSpec& plan : first.plan) plan = {.replicated = true, .boxes = {}};
    first.form = BatchForm::kVariableUnique;
    const Outcome expected = train(scenario, first);
    if (HasFatalFailure()) return;
    const ReferenceOutcome reference = reference_train(scenario, expected.initial, first.plan);
    expect_reference(scenario, expected, reference);
    if (HasFatalFailure()) return;
    for (int plan = 0; plan < 3; ++plan) {
      Deal deal = random_deal(scenario, random, ranks);
      deal.share = first.share;
      deal.form = BatchForm::kVariableUnique;
      const Outcome other = train(scenario, deal);
      if (HasFatalFailure()) return;
      expect_promises(scenario, deal, expected, other, reference);
      EXPECT_EQ(other.out_of_range, expected.out_of_range);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Inputs, OutputsOf16BitsAreTheFp32OutputsRoundedOnce) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 15000);
  Scenario scenario = random_scenario(random, 10);
  add_sequences(scenario, random);
  add_repeated_bags(scenario, random);
  round_gradients(scenario, random);
  for (const int ranks : {1, 2, 4}) {
    Deal deal = random_deal(scenario, random, ranks);
    if (GetParam() % 2 == 0) deal.form = BatchForm::kVariableUnique;
    const Outcome exact = train(scenario, deal);
    if (HasFatalFailure()) return;
    for (const shardrec_dtype dtype : {SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
      SCOPED_TRACE("ranks " + std::to_string(ranks) + " dtype " + std::to_string(dtype));
      deal.output_dtype = dtype;
      const Outcome half = train(scenario, deal);
      if (HasFatalFailure()) return;
      const auto expect_rounded = [&](std::vector<float> expected, const std::vector<float>& got) {
        for (float& x : expected) x = rounded(x, dtype);
        EXPECT_EQ(got, expected);
      };
      for (size_t s = 0; s < scenario.steps.size(); ++s) {
        for (size_t i = 0; i < scenario.steps[s].size(); ++i) {
          expect_rounded(exact.outputs[s][i], half.outputs[s][i]);
          for (size_t f = 0; f < scenario.features.size(); ++f) {
            expect_rounded(exact.sequences[s][i][f], half.sequences[s][i][f]);
          }
        }
      }
      for (size_t t = 0; t < scenario.tables.size(); ++t) {
        expect_same_bits(exact.tables[t], half.tables[t], "table");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Inputs, ::testing::Range(0, seeds(6)));

}  // namespace
}  // namespace shardrec::test
