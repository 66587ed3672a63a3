// In what precision a stack of layers multiplies, and keeps what it computes (capi's layers.h has the formulas).
//
// BFLOAT16 and FLOAT16 on the CPU: the same numbers are kept as floats. Each kernel and each product is that of
// FLOAT32, and what it has written is rounded where a device keeps it in 16 bits. So both compute the same but for the
// order of sums inside a product.
#pragma once

#include <cstdint>

#include "compute/element.h"

namespace shardrec::dense {

enum class Precision : int32_t {  // as shardrec_precision counts
  kFloat32 = 0,
  kTfloat32 = 1,  // on a device
  kBfloat16 = 2,
  kFloat16 = 3,  // with a scale of gradients (loss_scale.h)
};

// What lies between layers has the numbers of this type.
constexpr compute::Element element_of(Precision precision) noexcept {
  switch (precision) {
    case Precision::kBfloat16:
      return compute::Element::kBfloat16;
    case Precision::kFloat16:
      return compute::Element::kFloat16;
    default:
      return compute::Element::kFloat32;
  }
}

}  // namespace shardrec::dense
