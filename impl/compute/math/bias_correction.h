// What the moments of Adam and LAMB are multiplied by because they began at 0 (optimizer.h: bias1, bias2), with the
// same bits on the host and on a device.
#pragma once

#include <cstdint>

#include "compute/math/attributes.h"

namespace shardrec::compute::math {

// base^exponent by squaring; its relative error is below exponent * 2^-52. exponent >= 0.
SHARDREC_HOST_DEVICE inline double power(double base, int64_t exponent) noexcept {
  double product = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 != 0) product *= base;
  }
  return product;
}

// 1 / (1 - beta^step) of step 1, 2, ...
SHARDREC_HOST_DEVICE inline float bias_correction(double beta, int64_t step) noexcept {
  return static_cast<float>(1 / (1 - power(beta, step)));
}

}  // namespace shardrec::compute::math
