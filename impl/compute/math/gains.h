// What a copy of a number has gained, added to the number, on the host and on devices.
#pragma once

#include "compute/math/scalar.h"

namespace shardrec::compute::math {

// x + (after - before); `after`, bit for bit, where x is as it was. At least 0: where that would be less. A NaN stays one.
SHARDREC_HOST_DEVICE inline float add_gain(float x, float before, float after, bool at_least_zero) {
  const float sum = x == before ? after : x + (after - before);
  return at_least_zero && sum < 0 ? 0.0F : sum;
}

}  // namespace shardrec::compute::math
