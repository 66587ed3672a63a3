// Arithmetic, operations on bits, conversions, atomics, loads and stores give what CUDA defines.
#include <cuda_fp16.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "orders.h"

namespace shardrec::test {
namespace {

TEST(Arithmetic, RoundsOnceToNearest) {
  EXPECT_EQ(__fadd_rn(1.0F, 0x1p-24F), 1.0F);
  EXPECT_EQ(__fsub_rn(1.0F, 0x1p-25F), 1.0F);
  EXPECT_EQ(__fmul_rn(0x1.000002p0F, 0x1.000002p0F), 0x1.000004p0F);
  EXPECT_EQ(__fdiv_rn(1.0F, 3.0F), 0x1.555556p-2F);
  EXPECT_EQ(__fsqrt_rn(2.0F), 0x1.6a09e6p0F);
  // In two roundings this is zero.
  EXPECT_EQ(__fmaf_rn(0x1.000002p0F, 0x1.000002p0F, -0x1.000004p0F), 0x1p-46F);
  // No flush of small numbers to zero.
  EXPECT_EQ(__fmul_rn(FLT_MIN, 0.5F), 0x1p-127F);
}

TEST(Arithmetic, OperationsOnBits) {
  EXPECT_EQ(__umulhi(0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFEU);
  EXPECT_EQ(__umul64hi(~0ULL, ~0ULL), ~0ULL - 1);
  EXPECT_EQ(__clz(0), 32);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__clz(-1), 0);
  EXPECT_EQ(__clzll(0), 64);
  EXPECT_EQ(__clzll(1LL << 40), 23);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(__ffs(12), 3);
  EXPECT_EQ(__ffs(static_cast<int>(0x80000000)), 32);
  EXPECT_EQ(__ffsll(1LL << 40), 41);
  EXPECT_EQ(__popc(0xF0F0F0F1), 17);
  EXPECT_EQ(__popcll(~0ULL), 64);
  EXPECT_EQ(__brev(0x80000001), 0x80000001U);
  EXPECT_EQ(__brev(0x00000012), 0x48000000U);
  EXPECT_EQ(__float_as_uint(-2.0F), 0xC0000000U);
  EXPECT_EQ(__uint_as_float(0x3FC00000), 1.5F);
  EXPECT_EQ(__float_as_int(-0.0F), std::numeric_limits<int>::min());
  EXPECT_EQ(__int_as_float(0x7F800000), INFINITY);
}

TEST(Arithmetic, VectorTypesAreLaidOutAndAlignedAsCudas) {
  static_assert(sizeof(float4) == 16 && alignof(float4) == 16);
  static_assert(sizeof(uint4) == 16 && alignof(uint4) == 16);
  static_assert(sizeof(int4) == 16 && alignof(int4) == 16);
  static_assert(sizeof(longlong2) == 16 && alignof(longlong2) == 16);
  static_assert(sizeof(ulonglong2) == 16 && alignof(ulonglong2) == 16);
  static_assert(sizeof(float2) == 8 && alignof(float2) == 8);
  static_assert(sizeof(uint2) == 8 && alignof(uint2) == 8);
  static_assert(sizeof(int2) == 8 && alignof(int2) == 8);
  static_assert(sizeof(uint3) == 12 && alignof(uint3) == 4);
  static_assert(sizeof(__half) == 2 && sizeof(__half2) == 4 && alignof(__half2) == 4);
  static_assert(make_float4(1, 2, 3, 4).w == 4 && make_uint4(1, 2, 3, 4).z == 3);
  static_assert(make_int4(1, 2, 3, 4).y == 2 && make_float2(1, 2).y == 2);
  static_assert(make_uint2(1, 2).x == 1 && make_int2(1, 2).y == 2);
  static_assert(make_longlong2(1, 2).y == 2 && make_ulonglong2(1, 2).x == 1);
  static_assert(dim3(5).x == 5 && dim3(5).y == 1 && dim3(5).z == 1);
  static_assert(warpSize == 32);
}

TEST(Halves, EachHalfBecomesItsNumberAndThatNumberTheHalf) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const __half half = __ushort_as_half(static_cast<unsigned short>(bits));
    const unsigned exponent = bits >> 10 & 31;
    const unsigned fraction = bits & 1023;
    const float number = __half2float(half);
    if (exponent == 31 && fraction != 0) {
      EXPECT_TRUE(std::isnan(number));
      EXPECT_EQ(__half_as_ushort(__float2half_rn(number)), 0x7FFF);
      continue;
    }
    const float magnitude = exponent == 31  ? INFINITY
                            : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                            : std::ldexp(static_cast<float>(fraction + 1024),
                                                         static_cast<int>(exponent) - 25);
    ASSERT_EQ(__float_as_uint(number), __float_as_uint(bits >> 15 != 0 ? -magnitude : magnitude));
    ASSERT_EQ(__half_as_ushort(__float2half_rn(number)), bits);
  }
}

// Between each half and the next: below the middle the lower, above it the upper, at it the even.
TEST(Halves, NumbersBetweenHalvesBecomeTheNearest) {
  for (unsigned bits = 0; bits < 0x7C00; ++bits) {
    const auto half_of = [](float number) {
      return unsigned{__half_as_ushort(__float2half_rn(number))};
    };
    const float lower = __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
    const float upper = bits + 1 == 0x7C00
                            ? 0x1p16F
                            : __half2float(__ushort_as_half(static_cast<unsigned short>(bits + 1)));
    const float middle = lower + (upper - lower) / 2;
    ASSERT_EQ(half_of(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(half_of(std::nextafter(middle, INFINITY)), bits + 1);
    ASSERT_EQ(half_of(middle), bits + bits % 2);
    ASSERT_EQ(half_of(-middle), 0x8000 + bits + bits % 2);
  }
}

TEST(Halves, PairsAreWidenedOneByOne) {
  const float2 pair = __half22float2({__ushort_as_half(0x3C00), __ushort_as_half(0xC000)});
  EXPECT_EQ(pair.x, 1.0F);
  EXPECT_EQ(pair.y, -2.0F);
}

// ---- atomics

template <class T>
concept CanAdd = requires(T* at, T value) { atomicAdd(at, value); };
template <class T>
concept CanCompare = requires(T* at, T value) { atomicMin(at, value) + atomicMax(at, value); };
template <class T>
concept CanExchange =
    requires(T* at, T value) { atomicExch(at, value) + atomicCAS(at, value, value); };
// As CUDA's, less floats: uint64_t is an unsigned long, for which CUDA has none.
static_assert(CanAdd<int> && CanAdd<unsigned> && CanAdd<unsigned long long>);
static_assert(!CanAdd<float> && !CanAdd<double> && !CanAdd<uint64_t> && !CanAdd<long long>);
static_assert(CanCompare<int> && CanCompare<long long> && !CanCompare<float>);
static_assert(CanExchange<unsigned> && !CanExchange<float>);

struct Cells {
  int sum, least, most;
  unsigned any, all;
  unsigned long long sum64, least64;
  long long most64;
  unsigned exchanged_sum, last, chain;
};

__global__ void update_cells(Cells* cells) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(&cells->sum, i - 3);
  atomicMin(&cells->least, 10 - i);
  atomicMax(&cells->most, i - 500);
  atomicOr(&cells->any, 1U << (i % 31));
  atomicAnd(&cells->all, ~(1U << (i % 7)));
  atomicAdd(&cells->sum64, 1ULL << 33);
  atomicMin(&cells->least64, (5ULL << 40) - static_cast<unsigned>(i));
  atomicMax(&cells->most64, (-1LL << 40) + i);
  atomicAdd(&cells->exchanged_sum, atomicExch(&cells->last, static_cast<unsigned>(i) + 1));
  unsigned old = atomicAdd(&cells->chain, 0);
  for (unsigned seen = 0; (seen = atomicCAS(&cells->chain, old, old + 2)) != old;) old = seen;
}

using Atomics = InEachOrder;

TEST_P(Atomics, NoUpdateIsLost) {
  constexpr int kThreads = 300;
  Queue queue;
  Cells* device = queue.upload(std::vector<Cells>{{.sum = 0,
                                                   .least = 1000,
                                                   .most = -1000,
                                                   .any = 0,
                                                   .all = ~0U,
                                                   .sum64 = 1,
                                                   .least64 = ~0ULL,
                                                   .most64 = std::numeric_limits<long long>::min(),
                                                   .exchanged_sum = 0,
                                                   .last = 0,
                                                   .chain = 1}});
  queue.run(update_cells, 3, 100, 0, device);
  const Cells cells = queue.download(device, 1)[0];
  EXPECT_EQ(cells.sum, kThreads * (kThreads - 1) / 2 - 3 * kThreads);
  EXPECT_EQ(cells.least, 10 - 299);
  EXPECT_EQ(cells.most, 299 - 500);
  EXPECT_EQ(cells.any, 0x7FFFFFFFU);
  EXPECT_EQ(cells.all, 0xFFFFFF80U);
  EXPECT_EQ(cells.sum64, 1 + kThreads * (1ULL << 33));
  EXPECT_EQ(cells.least64, (5ULL << 40) - 299);
  EXPECT_EQ(cells.most64, (-1LL << 40) + 299);
  EXPECT_EQ(cells.exchanged_sum + cells.last, unsigned{kThreads * (kThreads + 1) / 2});
  EXPECT_EQ(cells.chain, 1U + 2 * kThreads);
}

// A block that waits for one that has taken its number before, whichever that is, does not wait for ever.
__global__ void pass_on(unsigned* begun, uint64_t* words) {
  const unsigned number = atomicAdd(begun, 1U);
  uint64_t before = number == 0 ? 1 : 0;
  while (before == 0) before = simt::load_relaxed(words + number - 1);
  simt::store_relaxed(words + number, before + number);
  __threadfence();
}

TEST_P(Atomics, WordsAreSeenByBlocksThatBeganLater) {
  constexpr unsigned kBlocks = 50;
  Queue queue;
  unsigned* begun = queue.upload(std::vector<unsigned>{0});
  uint64_t* words = queue.upload(std::vector<uint64_t>(kBlocks));
  queue.run(pass_on, kBlocks, 1, 0, begun, words);
  const std::vector<uint64_t> told = queue.download(words, kBlocks);
  for (uint64_t i = 0; i < kBlocks; ++i) EXPECT_EQ(told[i], 1 + i * (i + 1) / 2) << i;
}
SIMT_IN_EACH_ORDER(Atomics);

// ---- loads and stores with hints

__global__ void load_and_store(const float4* in, float4* out) {
  __stcs(out, __ldg(in));
  __stcg(out + 1, __ldcs(in + 1));
  __stwt(out + 2, __ldcg(in + 2));
}
TEST(LoadsAndStores, MoveWhatTheyName) {
  Queue queue;
  const float4* in = queue.upload(std::vector<float4>{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}});
  float4* out = queue.allocate<float4>(3);
  queue.run(load_and_store, 1, 1, 0, in, out);
  const std::vector<float4> got = queue.download(out, 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].x, static_cast<float>(4 * i + 1));
    EXPECT_EQ(got[i].w, static_cast<float>(4 * i + 4));
  }
}

}  // namespace
}  // namespace shardrec::test
