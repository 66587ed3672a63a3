// CUDA's additions to C++ that a header can give: qualifiers, vector types, the indices of a thread.
// There is no __shared__ and no __constant__: shared memory is dynamic (simt.h), constants are
// arguments of kernels.
#pragma once

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

inline constexpr int warpSize = 32;

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  unsigned x, y, z;
};

struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) longlong2 {
  long long x, y;
};
struct alignas(16) ulonglong2 {
  unsigned long long x, y;
};

constexpr int2 make_int2(int x, int y) { return {x, y}; }
constexpr int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
constexpr uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
constexpr uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
constexpr float2 make_float2(float x, float y) { return {x, y}; }
constexpr float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
constexpr longlong2 make_longlong2(long long x, long long y) { return {x, y}; }
constexpr ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return {x, y}; }

namespace simt {

// Of the thread of a block that calls; outside of kernels they end the process with a sentence.
// Blocks and grids have one dimension.
unsigned thread_index() noexcept;
unsigned block_index() noexcept;
unsigned block_threads() noexcept;
unsigned grid_blocks() noexcept;

}  // namespace simt

#define threadIdx (uint3{simt::thread_index(), 0, 0})
#define blockIdx (uint3{simt::block_index(), 0, 0})
#define blockDim (dim3{simt::block_threads(), 1, 1})
#define gridDim (dim3{simt::grid_blocks(), 1, 1})
