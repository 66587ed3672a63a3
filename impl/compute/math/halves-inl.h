// Conversions of numbers between fp32 and the 16-bit types, whose patterns are the lower half of a
// Word (element.h). Text of formulas: included by scalar.h and compute/cpu/kernels/simd_math-inl.h.

template <class Half>
SHARDREC_MATH Number widened(Word half);

template <>
SHARDREC_MATH Number widened<Float16>(Word half) {
  const Word magnitude = op::bit_and(half, op::word(0x7FFF));
  const Word fraction = op::shift_left<Float16::kDropped>(magnitude);
  const Word subnormal = op::bits(op::mul(op::from_integer(magnitude), op::number(0x1p-24F)));
  const Word normal = op::add(fraction, op::word(Float16::kRebias));
  const Word special = op::bit_or(fraction, op::word(kInfinity32));
  const Word finite = op::select(op::less(magnitude, op::word(0x400)), subnormal, normal);
  const Word bits = op::select(op::less(magnitude, op::word(Float16::kInfinity)), finite, special);
  const Word sign = op::shift_left<16>(op::bit_and(half, op::word(0x8000)));
  return op::from_bits(op::bit_or(sign, bits));
}

template <>
SHARDREC_MATH Number widened<Bfloat16>(Word half) {
  return op::from_bits(op::shift_left<16>(half));
}

// The magnitude of a number that is no NaN, rounded to nearest.
template <class Half>
SHARDREC_MATH Word nearest(Word magnitude);

// The same rounded with a random word, where nearest is finite.
template <class Half>
SHARDREC_MATH Word stochastic(Word magnitude, Word random);

template <>
SHARDREC_MATH Word nearest<Float16>(Word magnitude) {
  // Beside 0.5 the last place of a float is 2^-24, that of a subnormal half: the sum rounds.
  const Number half = op::number(0.5F);
  const Word subnormal = op::sub(op::bits(op::add(op::from_bits(magnitude), half)), op::bits(half));
  const Word odd = op::bit_and(op::shift_right<Float16::kDropped>(magnitude), op::word(1));
  const Word normal = op::shift_right<Float16::kDropped>(
      op::add(op::sub(magnitude, op::word(Float16::kRebias - 0xFFF)), odd));
  const Word rounded =
      op::select(op::less(magnitude, op::word(Float16::kLeastNormal)), subnormal, normal);
  return op::select(op::less(magnitude, op::word(Float16::kTooLarge)), rounded,
                    op::word(Float16::kInfinity));
}

template <>
SHARDREC_MATH Word stochastic<Float16>(Word magnitude, Word random) {
  const Word normal =
      op::shift_right<Float16::kDropped>(op::add(op::sub(magnitude, op::word(Float16::kRebias)),
                                                 op::shift_right<32 - Float16::kDropped>(random)));
  const Number units = op::mul(op::from_bits(magnitude), op::number(0x1p24F));
  const Word below = op::to_integer(units);
  const Number rest = op::sub(units, op::from_integer(below));
  const Word chance = op::to_integer(op::mul(rest, op::number(0x1p31F)));
  const Word up = op::shift_right<31>(op::add(chance, op::shift_right<1>(random)));
  const Word subnormal = op::add(below, up);
  return op::select(op::less(magnitude, op::word(Float16::kLeastNormal)), subnormal, normal);
}

template <>
SHARDREC_MATH Word nearest<Bfloat16>(Word magnitude) {
  const Word odd = op::bit_and(op::shift_right<16>(magnitude), op::word(1));
  return op::shift_right<16>(op::add(op::add(magnitude, op::word(0x7FFF)), odd));
}

template <>
SHARDREC_MATH Word stochastic<Bfloat16>(Word magnitude, Word random) {
  return op::shift_right<16>(op::add(magnitude, op::shift_right<16>(random)));
}

SHARDREC_MATH Word magnitude_of(Number x) { return op::bits(op::abs(x)); }

// Of a finite number whose nearest fp16 is infinite the largest finite fp16 of its sign; any other as it is.
SHARDREC_MATH Number within_float16(Number x) {
  const Word bits = op::bits(x);
  const Word magnitude = magnitude_of(x);
  const Word largest =
      op::bit_or(op::bit_and(bits, op::word(kSign32)), op::word(Float16::kLargest));
  const Word finite =
      op::select(op::less(magnitude, op::word(Float16::kLeastOverflow)), bits, largest);
  return op::from_bits(op::select(op::less(magnitude, op::word(kInfinity32)), finite, bits));
}

// The rounded magnitude of x with its sign; the one NaN for any NaN.
template <class Half>
SHARDREC_MATH Word signed_half(Number x, Word magnitude, Word rounded) {
  const Word sign = op::bit_and(op::shift_right<16>(op::bits(x)), op::word(kSign32 >> 16));
  return op::select(op::less(op::word(kInfinity32), magnitude), op::word(Half::kNan),
                    op::bit_or(sign, rounded));
}

template <class Half>
SHARDREC_MATH Word nearest_half(Number x) {
  const Word magnitude = magnitude_of(x);
  return signed_half<Half>(x, magnitude, nearest<Half>(magnitude));
}

template <class Half>
SHARDREC_MATH Word stochastic_half(Number x, Word random) {
  const Word magnitude = magnitude_of(x);
  const Word finite = op::min(stochastic<Half>(magnitude, random), op::word(Half::kInfinity - 1));
  const Word to_nearest = nearest<Half>(magnitude);
  const Word rounded =
      op::select(op::less(to_nearest, op::word(Half::kInfinity)), finite, to_nearest);
  return signed_half<Half>(x, magnitude, rounded);
}
