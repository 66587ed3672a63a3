#include "dense/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "core/error.h"

namespace shardrec::dense {
namespace {

TEST(Loss, EqualsTheDefinitionWhereTheDefinitionIsAccurate) {
  const std::vector<float> logits = {-3, -0.5F, 0, 0.25F, 2, 7};
  const std::vector<float> labels = {0, 1, 0.5F, 1, 0, 1};
  std::vector<float> probabilities(6), gradient(6);
  const double loss = bce_with_logits(logits, labels, probabilities, gradient);
  double expected = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double p = 1 / (1 + std::exp(-double{logits[i]}));
    expected -= labels[i] * std::log(p) + (1 - labels[i]) * std::log(1 - p);
    EXPECT_NEAR(probabilities[i], p, 6e-8);
    EXPECT_NEAR(gradient[i], (p - labels[i]) / 6, 2e-8);
  }
  EXPECT_NEAR(loss, expected / 6, 1e-13);
}

TEST(Loss, GradientEqualsFiniteDifferences) {
  const std::vector<float> labels = {1, 0, 0.25F};
  std::vector<float> logits = {0.5F, -1.25F, 2}, gradient(3);
  bce_with_logits(logits, labels, {}, gradient);
  for (size_t i = 0; i < 3; ++i) {
    constexpr float kStep = 0x1p-7F;
    const float at = logits[i];
    logits[i] = at + kStep;
    const double above = bce_with_logits(logits, labels, {}, {});
    logits[i] = at - kStep;
    const double below = bce_with_logits(logits, labels, {}, {});
    logits[i] = at;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 2e-6);
  }
}

TEST(Loss, StaysFiniteAndExactForLogitsOfTenThousand) {
  const std::vector<float> logits = {1e4F, 1e4F, -1e4F, -1e4F};
  const std::vector<float> labels = {1, 0, 1, 0};
  std::vector<float> probabilities(4), gradient(4);
  EXPECT_EQ(bce_with_logits(logits, labels, probabilities, gradient), 5000);
  EXPECT_EQ(probabilities, (std::vector<float>{1, 1, 0, 0}));
  EXPECT_EQ(gradient, (std::vector<float>{0, 0.25F, -0.25F, 0}));
}

// log(1 + exp(x)) of long double, for an x up to some thousands.
long double softplus(long double x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }

TEST(Loss, EqualsTheDefinitionInLongDouble) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 8);
  std::uniform_real_distribution<float> uniform(0, 1);
  std::vector<float> logits(5000), labels(5000), probabilities(5000), gradient(5000);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = i % 10 == 0 ? 100 * normal(random) : normal(random);
    labels[i] = i % 3 == 0 ? uniform(random) : static_cast<float>(i % 2);
  }
  const double loss = bce_with_logits(logits, labels, probabilities, gradient);
  long double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const long double z = logits[i], y = labels[i];
    sum += y * softplus(-z) + (1 - y) * softplus(z);
    const long double p = 1 / (1 + expl(-z));
    EXPECT_EQ(probabilities[i], static_cast<float>(p)) << z;
    EXPECT_NEAR(gradient[i], static_cast<double>((p - y) / 5000), 1e-11) << z;
  }
  EXPECT_NEAR(loss, static_cast<double>(sum / 5000), 1e-14 * loss);
}

// The order that layers.h has, of the losses of batches of one.
double documented_sum(const std::vector<float>& logits, const std::vector<float>& labels) {
  const auto tree = [](std::vector<double> terms) {
    for (size_t half = 128; half > 0; half /= 2) {
      for (size_t i = 0; i < half; ++i) terms[i] += terms[i + half];
    }
    return terms[0];
  };
  std::vector<double> lanes(256);
  for (size_t block = 0; block * 256 < logits.size(); ++block) {
    std::vector<double> terms(256);
    for (size_t i = 0; i < 256 && block * 256 + i < logits.size(); ++i) {
      const size_t sample = block * 256 + i;
      terms[i] = bce_with_logits({&logits[sample], 1}, {&labels[sample], 1}, {}, {});
    }
    lanes[block % 256] += tree(terms);
  }
  return tree(lanes);
}

TEST(Loss, TheSumHasTheOrderThatIsWritten) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 3);
  for (const size_t count : {1U, 7U, 255U, 256U, 257U, 5000U, 66000U}) {
    std::vector<float> logits(count), labels(count);
    double one_by_one = 0;
    for (size_t i = 0; i < count; ++i) {
      logits[i] = normal(random);
      labels[i] = static_cast<float>(random() % 2);
      one_by_one += bce_with_logits({&logits[i], 1}, {&labels[i], 1}, {}, {});
    }
    const double sum = documented_sum(logits, labels);
    EXPECT_EQ(bce_with_logits(logits, labels, {}, {}), sum / static_cast<double>(count)) << count;
    if (count >= 5000) {
      EXPECT_NE(sum, one_by_one) << "the order makes no difference";
    }
  }
}

TEST(Loss, ExtremesAreTheLimits) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<float> logits = {1000, -1000, 1000, -1000, infinity, -infinity, tiny, -tiny};
  const std::vector<float> labels = {0, 1, 1, 0, 1, 0, 1, 0};
  const std::vector<double> losses = {1000, 1000, 0, 0, 0, 0, std::log(2.0), std::log(2.0)};
  std::vector<float> probabilities(8), gradient(8);
  bce_with_logits(logits, labels, probabilities, gradient);
  EXPECT_EQ(probabilities, (std::vector<float>{1, 0, 1, 0, 1, 0, 0.5F, 0.5F}));
  EXPECT_EQ(gradient, (std::vector<float>{0.125F, -0.125F, 0, 0, 0, 0, -0.0625F, 0.0625F}));
  for (size_t i = 0; i < logits.size(); ++i) {
    const double loss = bce_with_logits({&logits[i], 1}, {&labels[i], 1}, {}, {});
    if (std::isinf(logits[i])) {
      EXPECT_TRUE(std::isnan(loss)) << logits[i];  // infinity times 0, or minus infinity
    } else {
      EXPECT_EQ(loss, losses[i]) << logits[i];
    }
  }
}

TEST(Loss, AnEmptyBatchHasLossZero) { EXPECT_EQ(bce_with_logits({}, {}, {}, {}), 0); }

TEST(Loss, NotANumberIsNotHidden) {
  const std::vector<float> logits = {1, std::numeric_limits<float>::quiet_NaN()};
  const std::vector<float> labels = {1, 0};
  std::vector<float> probabilities(2);
  EXPECT_TRUE(std::isnan(bce_with_logits(logits, labels, probabilities, {})));
  EXPECT_TRUE(std::isnan(probabilities[1]));
}

TEST(Loss, ALabelOutsideIsRefusedWithItsPositionAndNothingIsWritten) {
  for (const float bad : {-0.001F, 1.001F, std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    const std::vector<float> logits = {1, 2, 3};
    const std::vector<float> labels = {0, 1, bad};
    std::vector<float> probabilities(3, -7), gradient(3, -7);
    try {
      bce_with_logits(logits, labels, probabilities, gradient);
      ADD_FAILURE() << bad;
    } catch (const core::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT);
      EXPECT_EQ(error.parts().position, 2);
    }
    EXPECT_EQ(probabilities, std::vector<float>(3, -7));
    EXPECT_EQ(gradient, std::vector<float>(3, -7));
  }
}

}  // namespace
}  // namespace shardrec::dense
