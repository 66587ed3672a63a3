// Terms of sums over rows and gradients (kernels.h). Text of formulas: included by scalar.h and
// compute/cpu/kernels/simd_math-inl.h.

// Adds an element of a row to the sum of its bag.
SHARDREC_MATH Number add_element(Number weight, Number element, Number sum) {
  return op::fma(weight, element, sum);
}

// Adds an element of a gradient to the sum of its block. The scale is a power of two.
SHARDREC_MATH Number add_gradient(Number weight, Number scale, Number gradient, Number block) {
  return op::fma(weight, op::mul(scale, gradient), block);
}

// x within +-most. Comparisons with NaN are false: it stays.
SHARDREC_MATH Number clamped(Number x, Number most) {
  const Number least = op::neg(most);
  const Number capped = op::select(op::less(most, x), most, x);
  return op::select(op::less(x, least), least, capped);
}
