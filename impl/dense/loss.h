// Sigmoid and binary cross-entropy of logits, in double, stable for any logit:
//   loss = max(z, 0) - z * y + log(1 + exp(-|z|))
// Any thread.
#pragma once

#include <span>

namespace shardrec::dense {

// sigmoid(logit), rounded once.
float probability_of(float logit) noexcept;

// Writes probabilities and gradients ((sigmoid(z) - y) / batch) where the spans are not empty, and
// returns the mean loss in nats, 0 for an empty batch. All sizes are equal. Throws INVALID_ARGUMENT
// for a label outside 0 .. 1, with its position; then nothing has been written.
double bce_with_logits(std::span<const float> logits, std::span<const float> labels,
                       std::span<float> probabilities, std::span<float> gradient);

}  // namespace shardrec::dense
