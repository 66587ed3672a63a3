// The scale of gradients between the layers of a stack in float16, whose small numbers would vanish without one
// (Micikevicius et al. 2018, Mixed Precision Training). It is adapted as by PyTorch's GradScaler with the factors 2 and
// 0.5. Scales are powers of two: multiplying by one and by its inverse is exact. capi's layers.h has the rules.
//
// Thread rule: that of the owner.
#pragma once

#include <cmath>
#include <cstdint>

#include "compute/math/loss_scale.h"

namespace shardrec::dense {

using compute::math::kLargestLossScale;
inline constexpr double kUsualLossScale = 65536;
inline constexpr int64_t kUsualLossScaleSteps = 2000;

// Is it a power of two in [1, 2^24]?
inline bool is_loss_scale(double value) noexcept {
  int exponent = 0;
  return value >= 1 && value <= kLargestLossScale && std::frexp(value, &exponent) == 0.5;
}

struct LossScaleOptions {
  double scale = kUsualLossScale;  // at first
  int64_t steps =
      kUsualLossScaleSteps;  // finite backwards in a row that double it; 0: it is constant
};

struct LossScaleState {
  double scale = 1;              // of the next backward
  int64_t finite_backwards = 0;  // in a row, since the scale was changed
  int64_t skipped_steps = 0;
};

// A stack's on the CPU; of a stack on a device, what the host knew last (device/loss_scaling.h).
class LossScale {
 public:
  explicit LossScale(const LossScaleOptions& options) noexcept
      : steps_(options.steps), state_{.scale = options.scale} {}

  int64_t steps() const noexcept { return steps_; }  // as LossScaleOptions has it
  const LossScaleState& state() const noexcept { return state_; }
  void set_state(const LossScaleState& state) noexcept { state_ = state; }

  void end_backward(bool is_finite) noexcept;
  void count_skipped_step() noexcept { ++state_.skipped_steps; }

 private:
  int64_t steps_;
  LossScaleState state_;
};

inline void LossScale::end_backward(bool is_finite) noexcept {
  if (steps_ == 0) return;
  if (!is_finite) {
    state_.scale = std::fmax(state_.scale / 2, 1);
    state_.finite_backwards = 0;
  } else if (++state_.finite_backwards >= steps_) {
    state_.scale = std::fmin(state_.scale * 2, kLargestLossScale);
    state_.finite_backwards = 0;
  }
}

}  // namespace shardrec::dense
