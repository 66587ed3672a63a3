// The formulas for one number at a time, on the host and on devices.
//
// Their text is the headers that end in -inl.h: it names types (Number, Word) and operations (op::)
// of the namespace that includes it. Here a Number is a float; in compute/cpu/kernels/simd_math-inl.h, which
// has the same operations and includes the same text once per instruction set, it is a vector of
// them. So a formula is written once, and a set of kernels differs in its loops only.
//
// Each operation rounds once, to nearest; fma is fused. op::select evaluates both of its sides.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "compute/math/attributes.h"
#include "compute/math/half.h"
#include "compute/math/philox.h"
#include "compute/math/rates.h"
#include "compute/optimizer.h"

#define SHARDREC_MATH SHARDREC_HOST_DEVICE inline

namespace shardrec::compute::math {

using Number = float;
using Word = uint32_t;

namespace op {

SHARDREC_MATH Number number(float x) { return x; }
SHARDREC_MATH Number add(Number x, Number y) { return x + y; }
SHARDREC_MATH Number sub(Number x, Number y) { return x - y; }
SHARDREC_MATH Number mul(Number x, Number y) { return x * y; }
SHARDREC_MATH Number div(Number x, Number y) { return x / y; }
SHARDREC_MATH Number neg(Number x) { return -x; }
SHARDREC_MATH Number abs(Number x) { return std::fabs(x); }
SHARDREC_MATH Number sqrt(Number x) { return std::sqrt(x); }
// x * y + z, and z - x * y.
SHARDREC_MATH Number fma(Number x, Number y, Number z) { return std::fma(x, y, z); }
SHARDREC_MATH Number fnma(Number x, Number y, Number z) { return std::fma(-x, y, z); }
SHARDREC_MATH bool less(Number x, Number y) { return x < y; }

SHARDREC_MATH Word word(uint32_t x) { return x; }
SHARDREC_MATH Word add(Word x, Word y) { return x + y; }  // mod 2^32, as sub
SHARDREC_MATH Word sub(Word x, Word y) { return x - y; }
SHARDREC_MATH Word min(Word x, Word y) { return x < y ? x : y; }
SHARDREC_MATH Word bit_and(Word x, Word y) { return x & y; }
SHARDREC_MATH Word bit_or(Word x, Word y) { return x | y; }
SHARDREC_MATH Word bit_xor(Word x, Word y) { return x ^ y; }
template <int kBits>
SHARDREC_MATH Word shift_left(Word x) {
  return x << kBits;
}
template <int kBits>
SHARDREC_MATH Word shift_right(Word x) {
  return x >> kBits;
}
SHARDREC_MATH bool less(Word x, Word y) { return x < y; }  // both below 2^31
// The upper and the lower word of x * y.
SHARDREC_MATH void mul_wide(Word x, Word y, Word& upper, Word& lower) {
  const uint64_t product = uint64_t{x} * y;
  upper = static_cast<Word>(product >> 32);
  lower = static_cast<Word>(product);
}

SHARDREC_MATH Word bits(Number x) { return std::bit_cast<Word>(x); }
SHARDREC_MATH Number from_bits(Word x) { return std::bit_cast<Number>(x); }
// Towards zero, as an int32; anything for a number that none is.
SHARDREC_MATH Word to_integer(Number x) {
  return std::fabs(x) < 0x1p31F ? static_cast<Word>(static_cast<int32_t>(x)) : 0;
}
SHARDREC_MATH Number from_integer(Word x) { return static_cast<float>(static_cast<int32_t>(x)); }

template <class T>
SHARDREC_MATH T select(bool which, T yes, T no) {
  return which ? yes : no;
}

}  // namespace op

#include "compute/math/gradients-inl.h"
#include "compute/math/halves-inl.h"
#include "compute/math/optimizers-inl.h"
#include "compute/math/philox-inl.h"
#include "compute/math/quantize-inl.h"

// The random words of a counter (philox.h).
SHARDREC_MATH PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  philox_rounds(counter[0], counter[1], counter[2], counter[3], key);
  return counter;
}

}  // namespace shardrec::compute::math

#undef SHARDREC_MATH
