// A number of a row in 8 bits and back (kernels.h: quantize). Text of formulas: included by scalar.h
// and compute/cpu/kernels/simd_math-inl.h.

// The code before it is rounded to the nearest integer, to the even one of two.
SHARDREC_MATH Number unrounded_code(Number x, Number offset, Number inverse) {
  return op::mul(op::sub(x, offset), inverse);
}

SHARDREC_MATH Number decoded(Number code, Number scale, Number offset) {
  return op::fma(code, scale, offset);
}
