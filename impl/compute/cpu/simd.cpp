// The vector kernels: one generic source, compiled once per instruction set. Only sets with fused
// multiply-add take part; processors without one of them use the scalar set.
#define HWY_DISABLED_TARGETS                                                              \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | \
   HWY_PPC8 | HWY_RVV | HWY_WASM | HWY_WASM_EMU256)
#define HWY_DISABLE_PCLMUL_AES  // not needed: fewer demands on the processor

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "compute/cpu/sets.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "compute/cpu/simd_elementwise-inl.h"
#include "compute/cpu/simd_norm-inl.h"
#include "compute/cpu/simd_pooled-inl.h"
#include "compute/cpu/simd_update-inl.h"

namespace shardrec::compute::cpu::HWY_NAMESPACE {

extern const Kernels kKernels;
const Kernels kKernels = {.name = HWY_TARGET == HWY_AVX2   ? "avx2"
                                  : HWY_TARGET == HWY_AVX3 ? "avx512"
                                                           : "neon",
                          .pooled_lookup = pooled_lookup,
                          .row_update = row_update,
                          .row_sums = row_sums,
                          .row_gradients = row_gradients,
                          .row_norms = row_norms,
                          .row_rescale = row_rescale,
                          .scale_gradient = scale_gradient,
                          .widen = widen,
                          .narrow = narrow,
                          .dot = dot,
                          .add = add,
                          .divide = divide};

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
#endif

#if HWY_ONCE
#include <array>

namespace shardrec::compute::cpu {
namespace {

#if HWY_ARCH_X86
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("f16c");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#endif

struct Sets {
  std::array<const Kernels*, 2> kernels{};
  size_t count = 0;
};

Sets available_sets() {
  Sets sets;
#if HWY_TARGETS & HWY_AVX2
  if (has_avx2()) sets.kernels[sets.count++] = &N_AVX2::kKernels;
#endif
#if HWY_TARGETS & HWY_AVX3
  if (has_avx512()) sets.kernels[sets.count++] = &N_AVX3::kKernels;
#endif
#if HWY_TARGETS & HWY_NEON
  sets.kernels[sets.count++] = &N_NEON::kKernels;
#endif
  return sets;
}

}  // namespace

std::span<const Kernels* const> simd_kernels() {
  static const Sets sets = available_sets();
  return {sets.kernels.data(), sets.count};
}

}  // namespace shardrec::compute::cpu
#endif  // HWY_ONCE
