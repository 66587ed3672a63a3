// Sigmoid and binary cross-entropy of logits, in double, stable for any logit:
//   loss = max(z, 0) - z * y + log(1 + exp(-|z|))
// with an exponential and a logarithm of the library's own (compute/math/logistic.h), so that CPUs and devices have the
// same bits.
//
// The sum of the losses: those of each block of kLossBlock samples, absent ones 0, are added up as a tree: i +
// kLossBlock / 2 to i, then + kLossBlock / 4, and so on to + 1. The sums of blocks have kLossBlock lanes: that of block b is
// added to lane b mod kLossBlock, from 0 and by ascending b; then the same tree over lanes.
// Any thread.
#pragma once

#include <span>

namespace shardrec::dense {

inline constexpr int kLossBlock = 256;

// sigmoid(logit), rounded once.
float probability_of(float logit) noexcept;

// Writes probabilities and gradients ((sigmoid(z) - y) / batch) where the spans are not empty, and
// returns the mean loss in nats, 0 for an empty batch. All sizes are equal. Throws INVALID_ARGUMENT
// for a label outside 0 .. 1, with its position; then nothing has been written.
double bce_with_logits(std::span<const float> logits, std::span<const float> labels,
                       std::span<float> probabilities, std::span<float> gradient);

}  // namespace shardrec::dense
