#include "dense/metrics/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "comm/world.h"
#include "dense/auc.h"
#include "support/one_nan.h"

namespace shardrec::dense {
namespace {

using comm::Communicator;

struct Samples {
  std::vector<float> probabilities, labels;
};

// All pairs, one by one.
double brute_force_auc(const Samples& samples) {
  int64_t doubled = 0, pairs = 0;
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    for (size_t j = 0; j < samples.labels.size(); ++j) {
      if (samples.labels[i] != 1 || samples.labels[j] != 0) continue;
      ++pairs;
      const float p = samples.probabilities[i], n = samples.probabilities[j];
      doubled += p > n ? 2 : p == n ? 1 : 0;
    }
  }
  return static_cast<double>(doubled) / static_cast<double>(2 * pairs);
}

// levels: how many different predictions there are, 0 for any.
Samples draw(size_t count, int levels, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0, 1);
  Samples samples;
  for (size_t i = 0; i < count; ++i) {
    float p = uniform(random);
    if (levels > 0) p = std::floor(p * static_cast<float>(levels)) / static_cast<float>(levels);
    samples.probabilities.push_back(p);
    samples.labels.push_back(uniform(random) < 0.2F + 0.5F * p ? 1.0F : 0.0F);
  }
  return samples;
}

struct Values {
  double auc, ne, loss, ctr, samples;
};
Values values_of(const Metrics& metrics) {
  return {metrics.get(SHARDREC_METRIC_AUC), metrics.get(SHARDREC_METRIC_NE),
          metrics.get(SHARDREC_METRIC_LOSS), metrics.get(SHARDREC_METRIC_CTR),
          metrics.get(SHARDREC_METRIC_SAMPLES)};
}

void expect_values(const Values& values, const Samples& samples) {
  EXPECT_DOUBLE_EQ(values.auc, brute_force_auc(samples));
  double loss = 0, positives = 0;
  for (size_t i = 0; i < samples.labels.size(); ++i) {
    const double p = std::clamp(double{samples.probabilities[i]}, 1e-12, 1 - 1e-12);
    loss -= samples.labels[i] == 1 ? std::log(p) : std::log(1 - p);
    positives += samples.labels[i];
  }
  const auto count = static_cast<double>(samples.labels.size());
  const double rate = positives / count;
  EXPECT_NEAR(values.loss, loss / count, 1e-12 * loss);
  EXPECT_DOUBLE_EQ(values.ctr, rate);
  EXPECT_EQ(values.samples, count);
  const double entropy = -rate * std::log(rate) - (1 - rate) * std::log(1 - rate);
  EXPECT_NEAR(values.ne, loss / count / entropy, 1e-12 * values.ne);
}

TEST(Metrics, AucEqualsPairCountingWithTiesAndExtremes) {
  for (const int levels : {1, 2, 5, 50, 0}) {
    for (const size_t count : {2U, 10U, 300U, 3000U}) {
      SCOPED_TRACE(testing::Message() << count << " samples, " << levels << " levels");
      Samples samples = draw(count, levels, static_cast<unsigned>(count));
      samples.labels[0] = 1;
      samples.labels[1] = 0;
      if (count > 20) {
        samples.probabilities[3] = 0;
        samples.probabilities[4] = -0.0F;
        samples.probabilities[5] = 1;
        samples.probabilities[6] = std::numeric_limits<float>::denorm_min();
      }
      Metrics metrics(nullptr);
      metrics.update(samples.probabilities, samples.labels);
      metrics.compute();
      expect_values(values_of(metrics), samples);
    }
  }
}

void check_over_ranks(int ranks, const std::vector<size_t>& shares, int levels) {
  SCOPED_TRACE(testing::Message() << ranks << " ranks, " << levels << " levels");
  std::vector<Samples> parts;
  Samples all;
  for (size_t r = 0; r < shares.size(); ++r) {
    parts.push_back(draw(shares[r], levels, static_cast<unsigned>(r + 1)));
    all.probabilities.insert(all.probabilities.end(), parts[r].probabilities.begin(),
                             parts[r].probabilities.end());
    all.labels.insert(all.labels.end(), parts[r].labels.begin(), parts[r].labels.end());
  }
  std::vector<Values> values(static_cast<size_t>(ranks));
  std::vector<double> rates(static_cast<size_t>(ranks));
  const auto errors = comm::run_ranks(ranks, [&](Communicator& communicator) {
    const std::shared_ptr<Communicator> borrowed(&communicator, [](Communicator*) {});
    const auto rank = static_cast<size_t>(communicator.rank());
    Metrics metrics(borrowed);
    // In two calls with a compute between: later samples count from then on.
    const std::span<const float> p = parts[rank].probabilities, y = parts[rank].labels;
    const size_t half = p.size() / 2;
    metrics.update(p.first(half), y.first(half));
    metrics.compute();
    metrics.update(p.subspan(half), y.subspan(half));
    metrics.compute();
    // More exchanges than a channel keeps.
    for (int again = 0; again < comm::Channel::kMostInFlight; ++again) metrics.compute();
    values[rank] = values_of(metrics);
    rates[rank] = metrics.get(SHARDREC_METRIC_SAMPLES_PER_SECOND);
  });
  for (const auto& error : errors) ASSERT_FALSE(error) << error->sentence();
  expect_values(values[0], all);
  for (size_t r = 0; r < values.size(); ++r) {
    EXPECT_TRUE(shardrec::test::same_number(values[r].auc, values[0].auc));
    EXPECT_TRUE(shardrec::test::same_number(values[r].loss, values[0].loss));
    EXPECT_TRUE(shardrec::test::same_number(values[r].ne, values[0].ne));
    EXPECT_EQ(rates[r], rates[0]);
    EXPECT_GT(rates[r], 0);
  }
}

TEST(Metrics, AllRanksGetThePairCountOverUnevenAndEmptyShares) {
  for (const int levels : {1, 3, 40, 0}) {
    check_over_ranks(1, {500}, levels);
    check_over_ranks(2, {900, 1}, levels);
    check_over_ranks(3, {0, 700, 30}, levels);
    check_over_ranks(4, {3, 0, 0, 200}, levels);
    check_over_ranks(8, {100, 2, 0, 300, 5, 0, 70, 1}, levels);
  }
  check_over_ranks(2, {2000, 2500}, 7);  // above the size from which sorting is by digits
}

shardrec_status status_of(const Metrics& metrics, shardrec_metric metric) {
  const auto error = comm::error_of([&] { (void)metrics.get(metric); });
  return error ? error->status() : SHARDREC_OK;
}

TEST(Metrics, DegenerateLabelsHaveNoAucAndNoNormalisedEntropy) {
  for (const float label : {0.0F, 1.0F}) {
    Metrics metrics(nullptr);
    const std::vector<float> p = {0.25F, 0.75F}, y = {label, label};
    metrics.update(p, y);
    metrics.compute();
    EXPECT_EQ(status_of(metrics, SHARDREC_METRIC_AUC), SHARDREC_NOT_FOUND);
    EXPECT_EQ(status_of(metrics, SHARDREC_METRIC_NE), SHARDREC_NOT_FOUND);
    EXPECT_EQ(metrics.get(SHARDREC_METRIC_CTR), label);
    EXPECT_NEAR(metrics.get(SHARDREC_METRIC_LOSS), -std::log(0.25 * 0.75) / 2, 1e-15);
  }
  Metrics empty(nullptr);
  EXPECT_EQ(status_of(empty, SHARDREC_METRIC_SAMPLES), SHARDREC_INVALID_STATE);
  empty.compute();
  EXPECT_EQ(empty.get(SHARDREC_METRIC_SAMPLES), 0);
  EXPECT_EQ(empty.get(SHARDREC_METRIC_SAMPLES_PER_SECOND), 0);
  for (const auto metric :
       {SHARDREC_METRIC_AUC, SHARDREC_METRIC_NE, SHARDREC_METRIC_LOSS, SHARDREC_METRIC_CTR}) {
    EXPECT_EQ(status_of(empty, metric), SHARDREC_NOT_FOUND);
  }
  EXPECT_EQ(status_of(empty, static_cast<shardrec_metric>(99)), SHARDREC_INVALID_ARGUMENT);
}

TEST(Metrics, ACertainWrongPredictionHasABoundedLoss) {
  Metrics metrics(nullptr);
  const std::vector<float> p = {1, 0, 0, 1}, y = {0, 1, 0, 1};
  metrics.update(p, y);
  metrics.compute();
  EXPECT_NEAR(metrics.get(SHARDREC_METRIC_LOSS), -std::log(1e-12) / 2, 1e-4);
}

TEST(Metrics, BadSamplesAreRefusedWithTheirPositionAndNoneIsAdded) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  struct Case {
    std::vector<float> p, y;
    int64_t position;
  };
  for (const Case& bad : std::vector<Case>{{{0.5F, 1.01F}, {0, 1}, 1},
                                           {{-0.01F, 0.5F}, {0, 1}, 0},
                                           {{0.5F, 0.5F, nan}, {0, 1, 1}, 2},
                                           {{0.5F, 0.5F}, {0, 0.5F}, 1},
                                           {{0.5F, 0.5F}, {nan, 1}, 0}}) {
    Metrics metrics(nullptr);
    const auto error = comm::error_of([&] { metrics.update(bad.p, bad.y); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_INVALID_ARGUMENT);
    EXPECT_EQ(error->parts().position, bad.position);
    metrics.compute();
    EXPECT_EQ(metrics.get(SHARDREC_METRIC_SAMPLES), 0);
  }
}

TEST(Metrics, ResetForgetsSamplesAndResults) {
  Metrics metrics(nullptr);
  const std::vector<float> p = {0.1F, 0.9F}, y = {1, 0};
  metrics.update(p, y);
  metrics.compute();
  EXPECT_EQ(metrics.get(SHARDREC_METRIC_AUC), 0);
  metrics.reset();
  EXPECT_EQ(status_of(metrics, SHARDREC_METRIC_AUC), SHARDREC_INVALID_STATE);
  const std::vector<float> other = {0, 1};
  metrics.update(p, other);
  metrics.compute();
  EXPECT_EQ(metrics.get(SHARDREC_METRIC_AUC), 1);
  EXPECT_EQ(metrics.get(SHARDREC_METRIC_SAMPLES), 2);
}

TEST(Auc, PairsBeyondSixtyFourBitsAreCountedExactly) {
  const int64_t many = int64_t{1} << 40;
  const PairCounts below{.positives = 0, .negatives = many};
  const PairCounts above{.positives = many, .negatives = 0};
  EXPECT_EQ(area(add_ranges(below, above)), 1);
  EXPECT_EQ(area(add_ranges(above, below)), 0);
}

TEST(Auc, SortingByDigitsEqualsStdSort) {
  std::mt19937 random(1);
  std::vector<PackedSample> samples(10000), spare;
  for (PackedSample& sample : samples) sample = static_cast<PackedSample>(random());
  std::vector<PackedSample> expected = samples;
  std::sort(expected.begin(), expected.end());
  sort_samples(samples, spare);
  EXPECT_EQ(samples, expected);
}

}  // namespace
}  // namespace shardrec::dense
