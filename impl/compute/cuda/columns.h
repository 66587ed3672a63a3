// Some neighbouring columns of a row of floats: four, where addresses allow 16 bytes at once, or one.
#pragma once

#include "compute/cuda/rows.h"

namespace shardrec::compute::cuda {

template <int kColumns>
SHARDREC_DEVICE void load_columns(const float* from, float (&x)[kColumns]) {
  static_assert(kColumns == 1 || kColumns == 4);
  if constexpr (kColumns == 4) {
    const float4 raw = *reinterpret_cast<const float4*>(global(from));
    x[0] = raw.x;
    x[1] = raw.y;
    x[2] = raw.z;
    x[3] = raw.w;
  } else {
    x[0] = *global(from);
  }
}

// Writes numbers [i, i + kColumns) of a list of this type, rounded to nearest. Four of them are one
// store: the list allows it.
template <int kColumns>
SHARDREC_DEVICE void store_columns(void* list, int32_t element, int64_t i,
                                   const float (&x)[kColumns]) {
  static_assert(kColumns == 1 || kColumns == 4);
  if constexpr (kColumns == 1) {
    store_number(list, element, i, x[0]);
  } else if (element == SHARDREC_CUDA_FLOAT32) {
    // One store: of a plain assignment, the compiler may make one for each number.
    __stcg(reinterpret_cast<float4*>(global(static_cast<float*>(list)) + i),
           make_float4(x[0], x[1], x[2], x[3]));
  } else {
    uint32_t half[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      half[c] = element == SHARDREC_CUDA_FLOAT16 ? math::nearest_half<math::Float16>(x[c])
                                                 : math::nearest_half<math::Bfloat16>(x[c]);
    }
    __stcg(reinterpret_cast<uint2*>(global(static_cast<uint16_t*>(list)) + i),
           make_uint2(half[0] | half[1] << 16, half[2] | half[3] << 16));
  }
}

}  // namespace shardrec::compute::cuda
