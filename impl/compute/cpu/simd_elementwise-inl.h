// Kernels of one element at a time.
#if defined(SHARDREC_SIMD_ELEMENTWISE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_ELEMENTWISE_INL
#undef SHARDREC_SIMD_ELEMENTWISE_INL
#else
#define SHARDREC_SIMD_ELEMENTWISE_INL
#endif

#include <bit>

#include "compute/cpu/simd_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::compute::cpu::HWY_NAMESPACE {

// Division of many elements by one number. By a power of two it is a multiplication, which is
// several times faster and has the same correctly rounded result.
class Divisor {
 public:
  HWY_INLINE explicit Divisor(float divisor) : multiply_(has_exact_inverse(divisor)) {
    factor_ = hn::Set(kFloats, multiply_ ? 1.0F / divisor : divisor);
  }
  HWY_INLINE bool multiplies() const { return multiply_; }

  template <bool kMultiply>
  HWY_INLINE Vector apply(Vector x) const {
    return kMultiply ? hn::Mul(x, factor_) : hn::Div(x, factor_);
  }

 private:
  // No fraction bits, and an inverse that is a normal number.
  static HWY_INLINE bool has_exact_inverse(float divisor) {
    const uint32_t bits = std::bit_cast<uint32_t>(divisor);
    const uint32_t exponent = bits >> 23 & 0xFF;
    return (bits & 0x7FFFFF) == 0 && exponent >= 1 && exponent <= 253;
  }

  bool multiply_;
  Vector factor_;
};

// Calls vector(column, tail, is_tail) for all columns.
template <class Job>
HWY_INLINE void for_columns(const Job& job, size_t columns) {
  const Tail tail(columns % kStep);
  size_t c = 0;
  for (; c + kStep <= columns; c += kStep) job.template vector<false>(c, tail);
  if (c < columns) job.template vector<true>(c, tail);
}

template <bool kClamp, bool kMultiply, bool kMean>
struct Scale {
  const float* gradient;
  float* out;
  Divisor divisor;
  Vector most;
  Vector length;

  template <bool kTail>
  HWY_INLINE void vector(size_t column, const Tail& tail) const {
    Vector value = divisor.apply<kMultiply>(load<kTail>(gradient + column, tail));
    if constexpr (kClamp) {
      // Comparisons with NaN are false: it stays.
      const Vector least = hn::Neg(most);
      const Vector capped = hn::IfThenElse(hn::Gt(value, most), most, value);
      value = hn::IfThenElse(hn::Lt(value, least), least, capped);
    }
    if constexpr (kMean) value = hn::Div(value, length);
    store<kTail>(value, out + column, tail);
  }
};

template <bool kClamp, bool kMultiply, bool kMean>
void scale_columns(const ScaleGradient& scale, const float* gradient, float* out,
                   size_t columns) noexcept {
  for_columns(Scale<kClamp, kMultiply, kMean>{.gradient = gradient,
                                              .out = out,
                                              .divisor = Divisor(scale.divisor),
                                              .most = hn::Set(kFloats, scale.max_gradient),
                                              .length = hn::Set(kFloats, scale.length)},
              columns);
}

void scale_gradient(const ScaleGradient& scale, const void* gradient, float* out,
                    int64_t columns) noexcept {
  if (scale.element != Element::kFloat32)
    return scalar_kernels().scale_gradient(scale, gradient, out, columns);
  using Columns = void (*)(const ScaleGradient&, const float*, float*, size_t) noexcept;
  static constexpr Columns kColumns[2][2][2] = {
      // [clamp][multiply][mean]
      {{scale_columns<false, false, false>, scale_columns<false, false, true>},
       {scale_columns<false, true, false>, scale_columns<false, true, true>}},
      {{scale_columns<true, false, false>, scale_columns<true, false, true>},
       {scale_columns<true, true, false>, scale_columns<true, true, true>}}};
  const bool clamp = scale.max_gradient != 0;
  const bool multiply = Divisor(scale.divisor).multiplies();
  const bool mean = scale.length != 1;
  kColumns[clamp ? 1 : 0][multiply ? 1 : 0][mean ? 1 : 0](
      scale, static_cast<const float*>(gradient), out, static_cast<size_t>(columns));
}

struct Sum {
  const float* x;
  float* sum;

  template <bool kTail>
  HWY_INLINE void vector(size_t column, const Tail& tail) const {
    store<kTail>(hn::Add(load<kTail>(sum + column, tail), load<kTail>(x + column, tail)),
                 sum + column, tail);
  }
};

void add(const float* x, float* sum, int64_t columns) noexcept {
  for_columns(Sum{.x = x, .sum = sum}, static_cast<size_t>(columns));
}

template <bool kMultiply>
struct Quotient {
  float* x;
  Divisor divisor;

  template <bool kTail>
  HWY_INLINE void vector(size_t column, const Tail& tail) const {
    store<kTail>(divisor.apply<kMultiply>(load<kTail>(x + column, tail)), x + column, tail);
  }
};

void divide(float* x, float divisor, int64_t columns) noexcept {
  const Divisor by(divisor);
  if (by.multiplies()) {
    for_columns(Quotient<true>{.x = x, .divisor = by}, static_cast<size_t>(columns));
  } else {
    for_columns(Quotient<false>{.x = x, .divisor = by}, static_cast<size_t>(columns));
  }
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
