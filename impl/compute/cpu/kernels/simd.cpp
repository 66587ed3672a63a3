// The vector kernels: one generic source, compiled once per instruction set (the updates of rows, a
// source per element type beside this one). Processors without one of the sets use the scalar set.
#include "compute/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/cpu/kernels/simd.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "compute/cpu/kernels/row_kernels.h"
#include "compute/cpu/kernels/sets.h"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#include "compute/cpu/kernels/simd_elements-inl.h"
#include "compute/cpu/kernels/simd_elementwise-inl.h"
#include "compute/cpu/kernels/simd_gradient-inl.h"
#include "compute/cpu/kernels/simd_norm-inl.h"
#include "compute/cpu/kernels/simd_pooled-inl.h"
#include "compute/cpu/kernels/simd_quantize-inl.h"
#include "compute/cpu/kernels/simd_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

void row_gradients(const RowUpdate& job, float* out, int64_t first_row, int64_t last_row,
                   std::byte* memory) noexcept {
  if (first_row >= last_row || job.width <= 0) return;
  const RowScratch scratch(memory, job.width);
  const GradientSum sum(job, first_row, last_row, scratch.gradient);
  for (int64_t u = first_row; u < last_row; ++u) {
    sum.row(u);
    std::memcpy(out + u * job.width, scratch.gradient,
                static_cast<size_t>(job.width) * sizeof(float));
  }
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

namespace shardrec::compute::cpu::HWY_NAMESPACE {

extern const RowKernelTable kFloat32RowKernels;
extern const RowKernelTable kFloat16RowKernels;
extern const RowKernelTable kBfloat16RowKernels;

const RowKernels& kernels_of(const RowUpdate& job) {
  static constexpr std::array kTables = {&kFloat32RowKernels, &kFloat16RowKernels,
                                         &kBfloat16RowKernels};
  const RowKernelTable& optimizers = *kTables[static_cast<size_t>(job.element)];
  return optimizers[static_cast<size_t>(job.step.kind)][static_cast<size_t>(job.step.decay_mode)];
}

void row_update(const RowUpdate& job, int64_t first_row, int64_t last_row,
                std::byte* scratch) noexcept {
  if (first_row >= last_row || job.width <= 0) return;
  kernels_of(job).update(job, first_row, last_row, scratch);
}

void row_sums(const RowUpdate& job, const ColumnRange* ranges, int count, float* out,
              int64_t first_row, int64_t last_row, std::byte* scratch) noexcept {
  if (first_row >= last_row || job.width <= 0 || state_needs(job.step.kind).sums == 0) return;
  kernels_of(job).sums(job, ranges, count, out, first_row, last_row, scratch);
}

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
                          .element_update = element_update,
                          .element_sums = element_sums,
                          .scale_gradient = scale_gradient,
                          .widen = widen,
                          .narrow = narrow,
                          .quantize = quantize,
                          .dequantize = dequantize,
                          .dot = dot,
                          .narrow_ids = narrow_ids,
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
