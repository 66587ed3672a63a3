#include "dense/loss.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/error.h"

namespace shardrec::dense {

namespace {

double sigmoid(double z, double e) noexcept { return (z >= 0 ? 1 : e) / (1 + e); }

}  // namespace

float probability_of(float logit) noexcept {
  const double z = logit;
  return static_cast<float>(sigmoid(z, std::exp(-std::fabs(z))));
}

double bce_with_logits(std::span<const float> logits, std::span<const float> labels,
                       std::span<float> probabilities, std::span<float> gradient) {
  const size_t batch = logits.size();
  for (size_t i = 0; i < batch; ++i) {
    if (labels[i] >= 0 && labels[i] <= 1) continue;
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the label at position ", i, " is not in 0 .. 1"),
               {.position = static_cast<int64_t>(i)});
  }
  if (batch == 0) return 0;
  const auto count = static_cast<double>(batch);
  double sum = 0;
  for (size_t i = 0; i < batch; ++i) {
    const double z = logits[i];
    const double y = labels[i];
    const double e = std::exp(-std::fabs(z));
    const double p = sigmoid(z, e);
    // NaN must come through: std::max(z, 0.0) keeps it, with the arguments in this order.
    sum += std::max(z, 0.0) - z * y + std::log1p(e);
    if (!probabilities.empty()) probabilities[i] = static_cast<float>(p);
    if (!gradient.empty()) gradient[i] = static_cast<float>((p - y) / count);
  }
  return sum / count;
}

}  // namespace shardrec::dense
