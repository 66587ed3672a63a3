// The formulas (compute/math) for a vector of numbers of one instruction set.
#if defined(SHARDREC_SIMD_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_MATH_INL
#undef SHARDREC_SIMD_MATH_INL
#else
#define SHARDREC_SIMD_MATH_INL
#endif

#include "compute/cpu/kernels/simd_vectors-inl.h"
#include "compute/math/half.h"
#include "compute/math/philox.h"
#include "compute/math/rates.h"

#define SHARDREC_MATH HWY_INLINE

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<Floats>;
using Integers = hn::RebindToSigned<Floats>;
using WordVector = hn::Vec<Words>;
inline constexpr Words kWords;
inline constexpr Integers kIntegers;

using Number = Vector;
using Word = WordVector;
// What the text names besides.
using math::Bfloat16;
using math::Float16;
using math::kInfinity32;
using math::kNan32;
using math::kPhiloxMultiplier0;
using math::kPhiloxMultiplier1;
using math::kPhiloxRounds;
using math::kSign32;
using math::PhiloxKey;

// As in compute/math/scalar.h.
namespace op {

HWY_INLINE Number number(float x) { return hn::Set(kFloats, x); }
HWY_INLINE Number add(Number x, Number y) { return hn::Add(x, y); }
HWY_INLINE Number sub(Number x, Number y) { return hn::Sub(x, y); }
HWY_INLINE Number mul(Number x, Number y) { return hn::Mul(x, y); }
HWY_INLINE Number div(Number x, Number y) { return hn::Div(x, y); }
HWY_INLINE Number neg(Number x) { return hn::Neg(x); }
HWY_INLINE Number abs(Number x) { return hn::Abs(x); }
HWY_INLINE Number sqrt(Number x) { return hn::Sqrt(x); }
HWY_INLINE Number fma(Number x, Number y, Number z) { return hn::MulAdd(x, y, z); }
HWY_INLINE Number fnma(Number x, Number y, Number z) { return hn::NegMulAdd(x, y, z); }
HWY_INLINE auto less(Number x, Number y) { return hn::Lt(x, y); }

HWY_INLINE Word word(uint32_t x) { return hn::Set(kWords, x); }
HWY_INLINE Word add(Word x, Word y) { return hn::Add(x, y); }
HWY_INLINE Word sub(Word x, Word y) { return hn::Sub(x, y); }
HWY_INLINE Word min(Word x, Word y) { return hn::Min(x, y); }
HWY_INLINE Word bit_and(Word x, Word y) { return hn::And(x, y); }
HWY_INLINE Word bit_or(Word x, Word y) { return hn::Or(x, y); }
HWY_INLINE Word bit_xor(Word x, Word y) { return hn::Xor(x, y); }
template <int kBits>
HWY_INLINE Word shift_left(Word x) {
  return hn::ShiftLeft<kBits>(x);
}
template <int kBits>
HWY_INLINE Word shift_right(Word x) {
  return hn::ShiftRight<kBits>(x);
}
HWY_INLINE auto less(Word x, Word y) {
  return hn::RebindMask(kWords, hn::Lt(hn::BitCast(kIntegers, x), hn::BitCast(kIntegers, y)));
}
HWY_INLINE void mul_wide(Word x, Word y, Word& upper, Word& lower) {
  using Longs = hn::RepartitionToWide<Words>;
  constexpr Longs kLongs;
  const auto even = hn::MulEven(x, y);
  const auto odd = hn::MulEven(hn::BitCast(kWords, hn::ShiftRight<32>(hn::BitCast(kLongs, x))), y);
  upper = hn::OddEven(hn::BitCast(kWords, odd), hn::BitCast(kWords, hn::ShiftRight<32>(even)));
  lower = hn::OddEven(hn::BitCast(kWords, hn::ShiftLeft<32>(odd)), hn::BitCast(kWords, even));
}

HWY_INLINE Word bits(Number x) { return hn::BitCast(kWords, x); }
HWY_INLINE Number from_bits(Word x) { return hn::BitCast(kFloats, x); }
HWY_INLINE Word to_integer(Number x) { return hn::BitCast(kWords, hn::ConvertTo(kIntegers, x)); }
HWY_INLINE Number from_integer(Word x) { return hn::ConvertTo(kFloats, hn::BitCast(kIntegers, x)); }

template <class Which, class T>
HWY_INLINE T select(Which which, T yes, T no) {
  return hn::IfThenElse(which, yes, no);
}

}  // namespace op

#include "compute/math/gradients-inl.h"
#include "compute/math/halves-inl.h"
#include "compute/math/optimizers-inl.h"
#include "compute/math/philox-inl.h"
#include "compute/math/quantize-inl.h"

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#undef SHARDREC_MATH

#endif
