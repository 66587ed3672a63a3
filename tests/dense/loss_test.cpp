#include "dense/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
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
