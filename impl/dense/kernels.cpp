#include "dense/kernels.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"

// Without a fused multiply-add in hardware vectors buy nothing here: such machines take the
// portable set.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "dense/kernels.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h comes first: it includes this file once per instruction set.
#include <hwy/highway.h>

#include "dense/dropout_kernels-inl.h"
#include "dense/interaction_kernels-inl.h"
#include "dense/layer_kernels-inl.h"
#include "dense/norm_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::dense::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
constexpr const char* kName = "avx512";
#elif HWY_TARGET == HWY_AVX2
constexpr const char* kName = "avx2";
#elif HWY_TARGET == HWY_NEON
constexpr const char* kName = "neon";
#else
constexpr const char* kName = "scalar";
#endif

constexpr Kernels kKernels = {
    .name = kName,
    .bias_activation = &bias_activation,
    .relu_backward = &relu_backward,
    .column_sums = &column_sums,
    .add = &add,
    .scale = &scale,
    .round_float16 = &round_float16,
    .round_bfloat16 = &round_bfloat16,
    .square_sum = &square_sum,
    .cross_forward = &cross_forward,
    .cross_backward = &cross_backward,
    .layer_norm_forward = &layer_norm_forward,
    .layer_norm_backward = &layer_norm_backward,
    .dropout = &dropout,
    .interaction_forward = &interaction_forward,
    .interaction_backward = &interaction_backward,
};

}  // namespace shardrec::dense::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shardrec::dense {

size_t interaction_scratch(const InteractionShape& shape) noexcept {
  const auto vectors = static_cast<size_t>(shape.features + 1);
  return std::max(static_cast<size_t>(padded_vectors(shape) * shape.dim), vectors * vectors);
}

const Kernels& kernels() {
  const Kernels* const sets[] = {
#if (HWY_TARGETS & HWY_AVX3) != 0
      &N_AVX3::kKernels,
#endif
#if (HWY_TARGETS & HWY_AVX2) != 0
      &N_AVX2::kKernels,
#endif
#if (HWY_TARGETS & HWY_NEON) != 0
      &N_NEON::kKernels,
#endif
#if (HWY_TARGETS & HWY_EMU128) != 0
      &N_EMU128::kKernels,
#endif
#if (HWY_TARGETS & HWY_SCALAR) != 0
      &N_SCALAR::kKernels,
#endif
  };
  const std::string_view wanted = compute::cpu_kernels().name;
  for (const Kernels* set : sets) {
    if (wanted == set->name) return *set;
  }
  return *sets[std::size(sets) - 1];
}

}  // namespace shardrec::dense
#endif  // HWY_ONCE
