// Some neighbouring columns of a row: four or eight, where addresses allow vectors, or one.
#pragma once

#include "compute/cuda/kernels/rows.h"

namespace shardrec::compute::cuda {

template <int kColumns>
SHARDREC_DEVICE void load_columns(const float* from, float (&x)[kColumns]) {
  static_assert(kColumns == 1 || kColumns == 4 || kColumns == 8);
  if constexpr (kColumns == 1) {
    x[0] = *global(from);
  } else {
#pragma unroll
    for (int c = 0; c < kColumns; c += 4) {
      const float4 raw = *reinterpret_cast<const float4*>(global(from) + c);
      x[c] = raw.x;
      x[c + 1] = raw.y;
      x[c + 2] = raw.z;
      x[c + 3] = raw.w;
    }
  }
}

// Two numbers of a 16-bit type, rounded to nearest, side by side.
SHARDREC_DEVICE uint32_t nearest_halves(int32_t element, float x, float y) {
  return element == SHARDREC_CUDA_FLOAT16
             ? nearest_number<math::Float16>(x) | nearest_number<math::Float16>(y) << 16
             : nearest_number<math::Bfloat16>(x) | nearest_number<math::Bfloat16>(y) << 16;
}

// Writes numbers [i, i + kColumns) of a list of this type, rounded to nearest. Four or eight of them are
// stores of 16 bytes, or of all of them where they are less: the list allows it.
template <int kColumns>
SHARDREC_DEVICE void store_columns(void* list, int32_t element, int64_t i,
                                   const float (&x)[kColumns]) {
  static_assert(kColumns == 1 || kColumns == 4 || kColumns == 8);
  if constexpr (kColumns == 1) {
    store_number(global(list), element, i, x[0]);
  } else if (element == SHARDREC_CUDA_FLOAT32) {
    // One store each: of a plain assignment, the compiler may make one for each number.
    auto* const to = reinterpret_cast<float4*>(global(static_cast<float*>(list)) + i);
#pragma unroll
    for (int c = 0; c < kColumns; c += 4) {
      __stcg(to + c / 4, make_float4(x[c], x[c + 1], x[c + 2], x[c + 3]));
    }
  } else {
    uint16_t* const to = global(static_cast<uint16_t*>(list)) + i;
    const uint32_t first = nearest_halves(element, x[0], x[1]);
    const uint32_t second = nearest_halves(element, x[2], x[3]);
    if constexpr (kColumns == 4) {
      __stcg(reinterpret_cast<uint2*>(to), make_uint2(first, second));
    } else {
      __stcg(reinterpret_cast<uint4*>(to),
             make_uint4(first, second, nearest_halves(element, x[4], x[5]),
                        nearest_halves(element, x[6], x[7])));
    }
  }
}

}  // namespace shardrec::compute::cuda
