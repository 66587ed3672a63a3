// How threads read rows of a table: each lane of a group has some columns of a row, 16 bytes where rows
// allow it, one number where they do not. What was loaded stays as it is (Raw) until it is used, so that
// many loads are on their way at once.
#pragma once

#include <cuda_fp16.h>

#include "compute/cuda/jobs/cuda_plugin.h"
#include "compute/cuda/kernels/device.h"
#include "compute/math/scalar.h"

namespace shardrec::compute::cuda {

// The virtual lanes of a sum over columns (kernels.h): column mod so many.
inline constexpr int kVirtualLanes = 16;

// The conversion of the hardware: the same number as math::widened for every pattern, a NaN's payload
// aside.
template <class Half>
SHARDREC_DEVICE float widened_number(uint32_t half) {
  if constexpr (std::is_same_v<Half, math::Float16>) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(half)));
  } else {
    return math::widened<Half>(half);
  }
}

// math::nearest_half, likewise by the hardware, but for its NaN.
template <class Half>
SHARDREC_DEVICE math::Word nearest_number(float x) {
  if constexpr (std::is_same_v<Half, math::Float16>) {
    const math::Word rounded = __half_as_ushort(__float2half_rn(x));
    return x == x ? rounded : math::Float16::kNan;
  } else {
    return math::nearest_half<Half>(x);
  }
}

// 16 bytes of a row. Raw is moved at once, and must be aligned as it says.
struct Float32Vector {
  static constexpr size_t kElementBytes = 4;
  static constexpr int kColumns = 4;
  using Raw = float4;

  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) {
    x[0] = raw.x;
    x[1] = raw.y;
    x[2] = raw.z;
    x[3] = raw.w;
  }
};

struct HalfVector {
  static constexpr size_t kElementBytes = 2;
  static constexpr int kColumns = 8;
  using Raw = uint4;
};
struct Float16Vector : HalfVector {
  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) {
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = widened_number<math::Float16>(words[i] & 0xFFFF);
      x[2 * i + 1] = widened_number<math::Float16>(words[i] >> 16);
    }
  }
};
struct Bfloat16Vector : HalfVector {
  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) {
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      x[2 * i] = widened_number<math::Bfloat16>(words[i] & 0xFFFF);
      x[2 * i + 1] = widened_number<math::Bfloat16>(words[i] >> 16);
    }
  }
};

// One number of a row.
struct Float32Single {
  static constexpr size_t kElementBytes = 4;
  static constexpr int kColumns = 1;
  using Raw = float;

  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) { x[0] = raw; }
};
struct Float16Single {
  static constexpr size_t kElementBytes = 2;
  static constexpr int kColumns = 1;
  using Raw = uint16_t;

  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) {
    x[0] = widened_number<math::Float16>(raw);
  }
};
struct Bfloat16Single {
  static constexpr size_t kElementBytes = 2;
  static constexpr int kColumns = 1;
  using Raw = uint16_t;

  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) {
    x[0] = widened_number<math::Bfloat16>(raw);
  }
};

// What a lane loads of a list whose rows are `stride` numbers apart.
template <class Row>
SHARDREC_DEVICE const typename Row::Raw& raw_at(const void* list, int64_t stride, int64_t row,
                                                int64_t column) {
  return *reinterpret_cast<const typename Row::Raw*>(
      static_cast<const unsigned char*>(global(list)) +
      static_cast<size_t>(row * stride + column) * Row::kElementBytes);
}

// Writes x as number i of a list of this type, rounded to nearest.
SHARDREC_DEVICE void store_number(void* list, int32_t element, int64_t i, float x) {
  if (element == SHARDREC_CUDA_FLOAT32) {
    static_cast<float*>(list)[i] = x;
    return;
  }
  const math::Word half = element == SHARDREC_CUDA_FLOAT16 ? nearest_number<math::Float16>(x)
                                                           : nearest_number<math::Bfloat16>(x);
  static_cast<uint16_t*>(list)[i] = static_cast<uint16_t>(half);
}

}  // namespace shardrec::compute::cuda
