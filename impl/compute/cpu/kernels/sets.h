// The sets of CPU kernels that are compiled in. Each set is one table of functions, filled in one
// place.
#pragma once

#include <span>

#include "compute/kernels.h"

namespace shardrec::compute::cpu {

// Plain C++, one element at a time: what the others are compared with.
const Kernels& scalar_kernels();

// One per instruction set of simd.cpp that this processor has, best last.
std::span<const Kernels* const> simd_kernels();

}  // namespace shardrec::compute::cpu
