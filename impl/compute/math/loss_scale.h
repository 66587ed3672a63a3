// The bound of a scale of gradients (dense/loss_scale.h), on the host and on devices.
#pragma once

namespace shardrec::compute::math {

inline constexpr double kLargestLossScale = 0x1p24;

}  // namespace shardrec::compute::math
