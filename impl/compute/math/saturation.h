// Floats rounded to fp16 for their way to other ranks, where a finite number must not become infinite.
#pragma once

#include <cstdint>

#include "compute/kernels.h"

namespace shardrec::compute::math {

// As kernels.narrow to Element::kFloat16, but a finite number beyond fp16's range becomes the largest
// finite half of its sign (within_float16). Returns how many there were. Any thread.
int64_t narrow_saturating(const Kernels& kernels, const float* in, uint16_t* out,
                          int64_t count) noexcept;

}  // namespace shardrec::compute::math
