// The columns of a row that one lane has at a time: four of them, loaded and stored at once, or a single
// one, where rows do not allow that. Neighbouring lanes have neighbouring columns, so that what a warp
// asks for has no gaps.
#pragma once

#include "compute/cuda/kernels/rows.h"

namespace shardrec::compute::cuda {

// Floats of gradients, state and results.
template <int kColumns>
struct LaneFloats;

template <>
struct LaneFloats<4> {
  SHARDREC_DEVICE static void load(const float* at, float (&x)[4]) {
    const float4 raw = *reinterpret_cast<const float4*>(global(at));
    x[0] = raw.x;
    x[1] = raw.y;
    x[2] = raw.z;
    x[3] = raw.w;
  }
  SHARDREC_DEVICE static void store(float* at, const float (&x)[4]) {
    *reinterpret_cast<float4*>(global(at)) = make_float4(x[0], x[1], x[2], x[3]);
  }
  // From any address.
  SHARDREC_DEVICE static void load_each(const float* at, float (&x)[4]) {
#pragma unroll
    for (int c = 0; c < 4; ++c) x[c] = global(at)[c];
  }
};

template <>
struct LaneFloats<1> {
  SHARDREC_DEVICE static void load(const float* at, float (&x)[1]) { x[0] = *global(at); }
  SHARDREC_DEVICE static void store(float* at, const float (&x)[1]) { *global(at) = x[0]; }
  SHARDREC_DEVICE static void load_each(const float* at, float (&x)[1]) { load(at, x); }
};

// Rows of tables, from a job's first column on. Raw is what was loaded, before it is needed. A step reads
// and writes a row once: no cache needs to keep it.
struct Float32Columns {
  static constexpr int kColumns = SHARDREC_CUDA_LANE_COLUMNS;
  using Raw = float4;

  SHARDREC_DEVICE static Raw load(const void* row, int32_t /*element*/, int column) {
    return __ldcs(reinterpret_cast<const float4*>(static_cast<const float*>(global(row)) + column));
  }
  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) {
    Float32Vector::widen(raw, x);
  }
};

template <class Type>
struct HalfColumns {
  static constexpr int kColumns = SHARDREC_CUDA_LANE_COLUMNS;
  using Half = Type;
  using Raw = uint2;

  SHARDREC_DEVICE static Raw load(const void* row, int32_t /*element*/, int column) {
    return __ldcs(
        reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(global(row)) + column));
  }
  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) {
    x[0] = widened_number<Half>(raw.x & 0xFFFF);
    x[1] = widened_number<Half>(raw.x >> 16);
    x[2] = widened_number<Half>(raw.y & 0xFFFF);
    x[3] = widened_number<Half>(raw.y >> 16);
  }
};
using Float16Columns = HalfColumns<math::Float16>;
using Bfloat16Columns = HalfColumns<math::Bfloat16>;

// Of any type of numbers.
struct SingleColumn {
  static constexpr int kColumns = 1;
  using Raw = float;

  SHARDREC_DEVICE static Raw load(const void* row, int32_t element, int column) {
    if (element == SHARDREC_CUDA_FLOAT32) return static_cast<const float*>(global(row))[column];
    const uint32_t half = static_cast<const uint16_t*>(global(row))[column];
    return element == SHARDREC_CUDA_FLOAT16 ? widened_number<math::Float16>(half)
                                            : widened_number<math::Bfloat16>(half);
  }
  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) { x[0] = raw; }
};

}  // namespace shardrec::compute::cuda
