// Numbers that are neither NaN nor infinite, on the host and on devices.
#pragma once

#include "compute/math/scalar.h"

namespace shardrec::compute::math {

SHARDREC_HOST_DEVICE inline bool is_finite(float x) { return magnitude_of(x) < kInfinity32; }

}  // namespace shardrec::compute::math
