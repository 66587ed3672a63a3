// Updates of rows of float32.
#include "compute/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/kernels/simd_update_float32.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "compute/cpu/kernels/row_kernels.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "compute/cpu/kernels/simd_update-inl.h"

namespace shardrec::compute::cpu::HWY_NAMESPACE {

extern const RowKernelTable kFloat32RowKernels;
const RowKernelTable kFloat32RowKernels = row_kernel_table<Float32Rows>();

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
#endif
