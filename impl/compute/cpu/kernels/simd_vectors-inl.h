// Vectors of columns for one instruction set: full vectors, and tails that touch no memory beyond
// the row. Included once per set by simd.cpp, inside Highway's per-target compilation.
#if defined(SHARDREC_SIMD_VECTORS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_VECTORS_INL
#undef SHARDREC_SIMD_VECTORS_INL
#else
#define SHARDREC_SIMD_VECTORS_INL
#endif

#include <hwy/highway.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "compute/cpu/kernels/sets.h"

// Before a loop of a constant count over an array of vectors, which then stays in registers.
#undef SHARDREC_UNROLL
#define SHARDREC_UNROLL HWY_UNROLL(16)

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

inline constexpr Floats kFloats;
inline constexpr size_t kStep = HWY_LANES(float);  // columns per vector
inline constexpr size_t kLaneVectors = static_cast<size_t>(kLanes) / kStep;
inline constexpr size_t kTileVectors = 8;  // sums held in registers
inline constexpr size_t kTileColumns = kTileVectors * kStep;
static_assert(static_cast<size_t>(kLanes) % kStep == 0);

// Numbers of 16 bits: as many as a vector has floats.
using Halves = hn::Rebind<uint16_t, Floats>;
using HalfVector = hn::Vec<Halves>;
inline constexpr Halves kHalves;

// Numbers of 8 bits, likewise.
using ByteColumns = hn::Rebind<uint8_t, Floats>;
inline constexpr ByteColumns kByteColumns;

// The first `count` columns of a vector, 0 <= count < kStep. Memory behind the others is not
// touched: it may belong to another thread, or not exist.
class Tail {
 public:
  HWY_INLINE explicit Tail(size_t count) : count_(count), mask_(hn::FirstN(kFloats, count)) {}

#if HWY_TARGET == HWY_NEON
  HWY_INLINE Vector load(const float* from) const { return copy_in(kFloats, from); }
  HWY_INLINE void store(Vector vector, float* to) const { copy_out(kFloats, vector, to); }
#else
  HWY_INLINE Vector load(const float* from) const { return hn::MaskedLoad(mask_, kFloats, from); }
  HWY_INLINE void store(Vector vector, float* to) const {
    hn::BlendedStore(vector, mask_, kFloats, to);
  }
#endif
#if HWY_TARGET == HWY_AVX3
  HWY_INLINE HalfVector load(const uint16_t* from) const {
    return hn::MaskedLoad(hn::FirstN(kHalves, count_), kHalves, from);
  }
  HWY_INLINE void store(HalfVector vector, uint16_t* to) const {
    hn::BlendedStore(vector, hn::FirstN(kHalves, count_), kHalves, to);
  }
#else
  HWY_INLINE HalfVector load(const uint16_t* from) const { return copy_in(kHalves, from); }
  HWY_INLINE void store(HalfVector vector, uint16_t* to) const { copy_out(kHalves, vector, to); }
#endif

  HWY_INLINE hn::Vec<ByteColumns> load(const uint8_t* from) const {
#if HWY_TARGET == HWY_AVX3
    return hn::MaskedLoad(hn::FirstN(kByteColumns, count_), kByteColumns, from);
#else
    return copy_in(kByteColumns, from);
#endif
  }

  // The columns; those of another vector in place of the others.
  HWY_INLINE Vector or_else(Vector vector, Vector others) const {
    return hn::IfThenElse(mask_, vector, others);
  }
  // The columns; 0 in place of the others.
  HWY_INLINE Vector only(Vector vector) const { return hn::IfThenElseZero(mask_, vector); }

 private:
  template <class Tag, class T>
  HWY_INLINE hn::Vec<Tag> copy_in(Tag tag, const T* from) const {
    HWY_ALIGN T columns[kStep] = {};
    std::memcpy(columns, from, count_ * sizeof(T));
    return hn::Load(tag, columns);
  }
  template <class Tag, class T>
  HWY_INLINE void copy_out(Tag tag, hn::Vec<Tag> vector, T* to) const {
    HWY_ALIGN T columns[kStep];
    hn::Store(vector, tag, columns);
    std::memcpy(to, columns, count_ * sizeof(T));
  }

  size_t count_;
  hn::Mask<Floats> mask_;
};

// kTail: the last of the vectors is partial.
template <bool kTail>
HWY_INLINE Vector load(const float* from, [[maybe_unused]] const Tail& tail) {
  if constexpr (kTail) {
    return tail.load(from);
  } else {
    return hn::LoadU(kFloats, from);
  }
}

template <bool kTail>
HWY_INLINE void store(Vector vector, float* to, [[maybe_unused]] const Tail& tail) {
  if constexpr (kTail) {
    tail.store(vector, to);
  } else {
    hn::StoreU(vector, kFloats, to);
  }
}

// Calls job.vector<is_tail>(column, tail) for all columns.
template <class Job>
HWY_INLINE void for_columns(const Job& job, size_t columns) {
  const Tail tail(columns % kStep);
  size_t c = 0;
  for (; c + kStep <= columns; c += kStep) job.template vector<false>(c, tail);
  if (c < columns) job.template vector<true>(c, tail);
}

// Prefetches to the second-level cache: on many processors more misses can be in flight than the
// first level has buffers for. kNear: to the first level.
template <bool kNear = false, class T>
HWY_INLINE void prefetch(const T* row, size_t columns) {
  constexpr size_t kLine = 64 / sizeof(T);
  constexpr int kLocality = kNear ? 3 : 2;
  for (size_t c = 0; c < columns; c += kLine) __builtin_prefetch(row + c, 0, kLocality);
  __builtin_prefetch(row + columns - 1, 0, kLocality);
}
// Both branches on their own: gcc else takes their addresses together, and keeps neither their
// order nor its registers.
template <class T>
HWY_INLINE void prefetch(bool near, const T* row, size_t columns) {
  if (HWY_UNLIKELY(near)) {
    asm volatile("" : "+r"(row));
    prefetch<true>(row, columns);
  } else {
    prefetch<false>(row, columns);
  }
}

// The same of a row that begins a line, or fits into one.
template <bool kNear, size_t kBytes, class T>
HWY_INLINE void prefetch_bytes(const T* row) {
  SHARDREC_UNROLL
  for (size_t c = 0; c < kBytes / sizeof(T); c += 64 / sizeof(T)) {
    __builtin_prefetch(row + c, 0, kNear ? 3 : 2);
  }
}
template <size_t kBytes, class T>
HWY_INLINE void prefetch_bytes(bool near, const T* row) {
  if (HWY_UNLIKELY(near)) {
    asm volatile("" : "+r"(row));
    prefetch_bytes<true, kBytes>(row);
  } else {
    prefetch_bytes<false, kBytes>(row);
  }
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
