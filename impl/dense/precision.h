// In what precision a stack of layers multiplies, and keeps what it computes (capi's layers.h has the formulas).
//
// BFLOAT16 on the CPU: the same numbers are kept as floats. Each kernel and each product is that of FLOAT32, and what
// it has written is rounded where a device keeps it in bfloat16. So both compute the same but for the order of sums
// inside a product.
#pragma once

#include <cstdint>

namespace shardrec::dense {

enum class Precision : int32_t {  // as shardrec_precision counts
  kFloat32 = 0,
  kTfloat32 = 1,  // on a device
  kBfloat16 = 2,
};

}  // namespace shardrec::dense
