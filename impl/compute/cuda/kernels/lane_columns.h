// The columns of a row that one lane has: eight of them, loaded and stored 16 bytes at once, or a single
// one, where rows do not allow that.
#pragma once

#include "compute/cuda/kernels/rows.h"

namespace shardrec::compute::cuda {

// Columns [first, first + count) of a job. With eight columns per lane count is 8, 4 or 0.
struct LaneColumns {
  int first = 0;
  int count = 0;
};

// The columns of a lane in a tile of lanes * kColumns columns.
template <int kColumns>
SHARDREC_DEVICE LaneColumns columns_of_lane(int tile, int lanes, int lane, int columns) {
  LaneColumns own{.first = (tile * lanes + lane) * kColumns};
  const int left = columns - own.first;
  own.count = left <= 0 ? 0 : left < kColumns ? left : kColumns;
  return own;
}

// Floats of gradients, state and results. The second half of eight that are four is that of others.
template <int kColumns>
struct LaneFloats;

template <>
struct LaneFloats<8> {
  SHARDREC_DEVICE static void load(const float* at, int count, float (&x)[8]) {
    const float4 a = *reinterpret_cast<const float4*>(global(at));
    const float4 b = *reinterpret_cast<const float4*>(global(count == 8 ? at + 4 : at));
    x[0] = a.x;
    x[1] = a.y;
    x[2] = a.z;
    x[3] = a.w;
    x[4] = b.x;
    x[5] = b.y;
    x[6] = b.z;
    x[7] = b.w;
  }
  SHARDREC_DEVICE static void store(float* at, int count, const float (&x)[8]) {
    *reinterpret_cast<float4*>(global(at)) = make_float4(x[0], x[1], x[2], x[3]);
    if (count == 8)
      *reinterpret_cast<float4*>(global(at + 4)) = make_float4(x[4], x[5], x[6], x[7]);
  }
  // From any address.
  SHARDREC_DEVICE static void load_each(const float* at, int count, float (&x)[8]) {
    const float* const second = count == 8 ? at + 4 : at;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      x[c] = global(at)[c];
      x[4 + c] = global(second)[c];
    }
  }
};

template <>
struct LaneFloats<1> {
  SHARDREC_DEVICE static void load(const float* at, int /*count*/, float (&x)[1]) {
    x[0] = *global(at);
  }
  SHARDREC_DEVICE static void store(float* at, int /*count*/, const float (&x)[1]) {
    *global(at) = x[0];
  }
  SHARDREC_DEVICE static void load_each(const float* at, int count, float (&x)[1]) {
    load(at, count, x);
  }
};

// Rows of tables. Raw is what was loaded, before it is needed.
struct Float32Columns {
  static constexpr int kColumns = SHARDREC_CUDA_LANE_COLUMNS;
  struct Raw {
    float x[kColumns];
  };

  SHARDREC_DEVICE static Raw load(const void* table, int32_t /*element*/, int64_t i, int count) {
    Raw raw;
    LaneFloats<kColumns>::load(static_cast<const float*>(table) + i, count, raw.x);
    return raw;
  }
  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) x[c] = raw.x[c];
  }
};

template <class Vector, class Type>
struct HalfColumns {
  static constexpr int kColumns = SHARDREC_CUDA_LANE_COLUMNS;
  using Half = Type;
  using Raw = uint4;

  SHARDREC_DEVICE static Raw load(const void* table, int32_t /*element*/, int64_t i,
                                  int /*count*/) {
    return *reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(global(table)) + i);
  }
  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) { Vector::widen(raw, x); }
};
using Float16Columns = HalfColumns<Float16Vector, math::Float16>;
using Bfloat16Columns = HalfColumns<Bfloat16Vector, math::Bfloat16>;

// Of any type of numbers.
struct SingleColumn {
  static constexpr int kColumns = 1;
  using Raw = float;

  SHARDREC_DEVICE static Raw load(const void* table, int32_t element, int64_t i, int /*count*/) {
    if (element == SHARDREC_CUDA_FLOAT32) return static_cast<const float*>(global(table))[i];
    const uint32_t half = static_cast<const uint16_t*>(global(table))[i];
    return element == SHARDREC_CUDA_FLOAT16 ? widened_float16(half) : widened_bfloat16(half);
  }
  SHARDREC_DEVICE static void widen(const Raw& raw, float (&x)[kColumns]) { x[0] = raw; }
};

}  // namespace shardrec::compute::cuda
