// Rows of 16 bits as vectors of floats, and the way back: half.h, a vector at a time.
#if defined(SHARDREC_SIMD_HALF_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_HALF_INL
#undef SHARDREC_SIMD_HALF_INL
#else
#define SHARDREC_SIMD_HALF_INL
#endif

#include "compute/cpu/half.h"
#include "compute/cpu/simd_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<Floats>;
using Integers = hn::RebindToSigned<Floats>;
using WordVector = hn::Vec<Words>;

inline constexpr Words kWords;
inline constexpr Integers kIntegers;

// Comparisons of numbers below 2^31.
HWY_INLINE auto less(WordVector a, WordVector b) {
  return hn::RebindMask(kWords, hn::Lt(hn::BitCast(kIntegers, a), hn::BitCast(kIntegers, b)));
}

template <class Half>
HWY_INLINE Vector widen_vector(HalfVector halves);

template <>
HWY_INLINE Vector widen_vector<Float16>(HalfVector halves) {
  constexpr hn::Rebind<hwy::float16_t, Floats> kFloat16s;
  return hn::PromoteTo(kFloats, hn::BitCast(kFloat16s, halves));
}

template <>
HWY_INLINE Vector widen_vector<Bfloat16>(HalfVector halves) {
  return hn::BitCast(kFloats, hn::ShiftLeft<16>(hn::PromoteTo(kWords, halves)));
}

// Half::nearest and Half::stochastic.
template <class Half>
HWY_INLINE WordVector nearest(WordVector magnitude);
template <class Half>
HWY_INLINE WordVector stochastic(WordVector magnitude, WordVector words);

template <>
HWY_INLINE WordVector nearest<Float16>(WordVector magnitude) {
  const Vector half = hn::Set(kFloats, 0.5F);
  const WordVector subnormal =
      hn::Sub(hn::BitCast(kWords, hn::Add(hn::BitCast(kFloats, magnitude), half)),
              hn::BitCast(kWords, half));
  const WordVector odd = hn::And(hn::ShiftRight<Float16::kDropped>(magnitude), hn::Set(kWords, 1));
  const WordVector normal = hn::ShiftRight<Float16::kDropped>(
      hn::Add(hn::Sub(magnitude, hn::Set(kWords, Float16::kRebias - 0xFFF)), odd));
  const WordVector rounded =
      hn::IfThenElse(less(magnitude, hn::Set(kWords, Float16::kLeastNormal)), subnormal, normal);
  return hn::IfThenElse(less(magnitude, hn::Set(kWords, Float16::kTooLarge)), rounded,
                        hn::Set(kWords, Float16::kInfinity));
}

template <>
HWY_INLINE WordVector stochastic<Float16>(WordVector magnitude, WordVector words) {
  const WordVector normal = hn::ShiftRight<Float16::kDropped>(
      hn::Add(hn::Sub(magnitude, hn::Set(kWords, Float16::kRebias)),
              hn::ShiftRight<32 - Float16::kDropped>(words)));
  const Vector units = hn::Mul(hn::BitCast(kFloats, magnitude), hn::Set(kFloats, 0x1p24F));
  const auto below = hn::ConvertTo(kIntegers, units);
  const Vector rest = hn::Sub(units, hn::ConvertTo(kFloats, below));
  const auto chance = hn::ConvertTo(kIntegers, hn::Mul(rest, hn::Set(kFloats, 0x1p31F)));
  const WordVector up =
      hn::ShiftRight<31>(hn::Add(hn::BitCast(kWords, chance), hn::ShiftRight<1>(words)));
  const WordVector subnormal = hn::Add(hn::BitCast(kWords, below), up);
  return hn::IfThenElse(less(magnitude, hn::Set(kWords, Float16::kLeastNormal)), subnormal, normal);
}

template <>
HWY_INLINE WordVector nearest<Bfloat16>(WordVector magnitude) {
  const WordVector odd = hn::And(hn::ShiftRight<16>(magnitude), hn::Set(kWords, 1));
  return hn::ShiftRight<16>(hn::Add(hn::Add(magnitude, hn::Set(kWords, 0x7FFF)), odd));
}

template <>
HWY_INLINE WordVector stochastic<Bfloat16>(WordVector magnitude, WordVector words) {
  return hn::ShiftRight<16>(hn::Add(magnitude, hn::ShiftRight<16>(words)));
}

// The rounded magnitude with its sign; the one NaN for any NaN.
template <class Half>
HWY_INLINE HalfVector signed_half(Vector x, WordVector magnitude, WordVector rounded) {
  const WordVector sign =
      hn::And(hn::ShiftRight<16>(hn::BitCast(kWords, x)), hn::Set(kWords, kSign32 >> 16));
  const WordVector half = hn::IfThenElse(less(hn::Set(kWords, kInfinity32), magnitude),
                                         hn::Set(kWords, Half::kNan), hn::Or(sign, rounded));
  return hn::DemoteTo(kHalves, hn::BitCast(kIntegers, half));
}

HWY_INLINE WordVector magnitude_of(Vector x) { return hn::BitCast(kWords, hn::Abs(x)); }

template <class Half>
HWY_INLINE HalfVector round_nearest(Vector x) {
  const WordVector magnitude = magnitude_of(x);
  return signed_half<Half>(x, magnitude, nearest<Half>(magnitude));
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
  const WordVector magnitude = magnitude_of(x);
  const WordVector infinity = hn::Set(kWords, Half::kInfinity);
  const WordVector finite =
      hn::Min(stochastic<Half>(magnitude, words), hn::Set(kWords, Half::kInfinity - 1));
  const WordVector to_nearest = nearest<Half>(magnitude);
  return signed_half<Half>(x, magnitude,
                           hn::IfThenElse(less(to_nearest, infinity), finite, to_nearest));
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
  using Stored = float;

  template <bool kTail>
  static HWY_INLINE Vector load(const float* from, const Tail& tail) {
    return HWY_NAMESPACE::load<kTail>(from, tail);
  }
};

template <class HalfType>
struct HalfRows {
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
