// How a row of floats becomes numbers of 8 bits (kernels.h: quantize): what is done once per row.
// What is done per number is in quantize-inl.h.
#pragma once

#include <limits>

#include "compute/element.h"
#include "compute/math/attributes.h"

namespace shardrec::compute::math {

struct RowCode {
  RowScale scale;
  float inverse = 0;  // 0: every code is 0
};

// least, most: of the row, where it is finite.
SHARDREC_HOST_DEVICE inline RowCode code_of_row(float least, float most, bool finite) noexcept {
  const float range = most - least;
  if (!finite || !(range <= std::numeric_limits<float>::max())) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    return {.scale = {.scale = kNan, .offset = kNan}};
  }
  // Which zero is the least of a +0 and a -0 depends on the instruction set: it becomes +0.
  const float offset = least + 0.0F;
  if (range < kLeastRange) return {.scale = {.scale = 0, .offset = offset}};
  return {.scale = {.scale = range / 255.0F, .offset = offset}, .inverse = 255.0F / range};
}

}  // namespace shardrec::compute::math
