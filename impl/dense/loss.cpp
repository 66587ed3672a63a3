#include "dense/loss.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "compute/math/logistic.h"
#include "core/error.h"

namespace shardrec::dense {

namespace {

using LossTerms = std::array<double, kLossBlock>;

double sum_of_terms(LossTerms& terms) noexcept {
  for (size_t distance = kLossBlock / 2; distance > 0; distance /= 2) {
    for (size_t i = 0; i < distance; ++i) terms[i] += terms[i + distance];
  }
  return terms[0];
}

}  // namespace

float probability_of(float logit) noexcept {
  return static_cast<float>(compute::math::cross_entropy_of(logit, 0).probability);
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
  LossTerms lanes{};
  for (size_t begin = 0; begin < batch; begin += kLossBlock) {
    LossTerms terms{};
    const size_t end = std::min<size_t>(batch, begin + kLossBlock);
    for (size_t i = begin; i < end; ++i) {
      const double y = labels[i];
      const auto [probability, loss] = compute::math::cross_entropy_of(logits[i], y);
      terms[i - begin] = loss;
      if (!probabilities.empty()) probabilities[i] = static_cast<float>(probability);
      if (!gradient.empty()) gradient[i] = static_cast<float>((probability - y) / count);
    }
    lanes[begin / kLossBlock % kLossBlock] += sum_of_terms(terms);
  }
  return sum_of_terms(lanes) / count;
}

}  // namespace shardrec::dense
