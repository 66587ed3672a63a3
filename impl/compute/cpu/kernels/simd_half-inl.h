// Rows of 16 bits as vectors of floats, and the way back.
#if defined(SHARDREC_SIMD_HALF_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_HALF_INL
#undef SHARDREC_SIMD_HALF_INL
#else
#define SHARDREC_SIMD_HALF_INL
#endif

#include "compute/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

template <class Half>
HWY_INLINE Vector widen_vector(HalfVector halves) {
  return widened<Half>(hn::PromoteTo(kWords, halves));
}

// An instruction.
template <>
HWY_INLINE Vector widen_vector<Float16>(HalfVector halves) {
  constexpr hn::Rebind<hwy::float16_t, Floats> kFloat16s;
  return hn::PromoteTo(kFloats, hn::BitCast(kFloat16s, halves));
}

HWY_INLINE HalfVector lower_halves(WordVector words) {
  return hn::DemoteTo(kHalves, hn::BitCast(kIntegers, words));
}

template <class Half>
HWY_INLINE HalfVector round_nearest(Vector x) {
  return lower_halves(nearest_half<Half>(x));
}

#if HWY_TARGET <= HWY_AVX2  // and what has more
// One instruction, that rounds to nearest whatever the mode of the thread, and keeps subnormals. It
// would keep a part of a NaN's bits.
template <>
HWY_INLINE HalfVector round_nearest<Float16>(Vector x) {
  constexpr hn::Rebind<hwy::float16_t, Floats> kFloat16s;
  const Vector nan = hn::BitCast(kFloats, hn::Set(kWords, kNan32));
  return hn::BitCast(kHalves, hn::DemoteTo(kFloat16s, hn::IfThenElse(hn::Eq(x, x), x, nan)));
}
#endif

template <class Half>
HWY_INLINE HalfVector round_stochastic(Vector x, WordVector words) {
  return lower_halves(stochastic_half<Half>(x, words));
}

template <bool kTail>
HWY_INLINE void store_half(HalfVector vector, uint16_t* to, [[maybe_unused]] const Tail& tail) {
  if constexpr (kTail) {
    tail.store(vector, to);
  } else {
    hn::StoreU(vector, kHalves, to);
  }
}

// How rows of an element type are read.
struct Float32Rows {
  static constexpr bool kCoded = false;
  using Stored = float;

  template <bool kTail>
  static HWY_INLINE Vector load(const float* from, const Tail& tail) {
    return HWY_NAMESPACE::load<kTail>(from, tail);
  }
};

template <class HalfType>
struct HalfRows {
  static constexpr bool kCoded = false;
  using Half = HalfType;
  using Stored = uint16_t;

  template <bool kTail>
  static HWY_INLINE Vector load(const uint16_t* from, [[maybe_unused]] const Tail& tail) {
    if constexpr (kTail) {
      return widen_vector<Half>(tail.load(from));
    } else {
      return widen_vector<Half>(hn::LoadU(kHalves, from));
    }
  }
};

// Columns of any type as floats, and floats rounded to nearest: jobs for for_columns().
template <class Type>
struct WidenColumns {
  const typename Type::Stored* from;
  float* to;

  template <bool kTail>
  HWY_INLINE void vector(size_t c, const Tail& tail) const {
    store<kTail>(Type::template load<kTail>(from + c, tail), to + c, tail);
  }
};

template <class Half>
struct NarrowColumns {
  const float* from;
  uint16_t* to;

  template <bool kTail>
  HWY_INLINE void vector(size_t c, const Tail& tail) const {
    store_half<kTail>(round_nearest<Half>(load<kTail>(from + c, tail)), to + c, tail);
  }
};

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
