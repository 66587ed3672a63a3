#include "compute/cpu/sets.h"

namespace shardrec::compute::cpu {
std::span<const Kernels* const> simd_kernels() { return {}; }
}  // namespace shardrec::compute::cpu
