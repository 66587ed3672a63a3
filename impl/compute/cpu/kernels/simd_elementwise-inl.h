// Kernels of one element at a time.
#if defined(SHARDREC_SIMD_ELEMENTWISE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_SIMD_ELEMENTWISE_INL
#undef SHARDREC_SIMD_ELEMENTWISE_INL
#else
#define SHARDREC_SIMD_ELEMENTWISE_INL
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "compute/cpu/kernels/simd_half-inl.h"
#include "compute/cpu/kernels/simd_sums-inl.h"

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

template <class Type, bool kClamp, bool kMultiply, bool kMean>
struct Scale {
  const typename Type::Stored* gradient;
  float* out;
  Divisor divisor;
  Vector most;
  Vector length;

  template <bool kTail>
  HWY_INLINE void vector(size_t column, const Tail& tail) const {
    Vector value = divisor.apply<kMultiply>(Type::template load<kTail>(gradient + column, tail));
    if constexpr (kClamp) value = clamped(value, most);
    if constexpr (kMean) value = hn::Div(value, length);
    store<kTail>(value, out + column, tail);
  }
};

using ScaleColumns = void (*)(const ScaleGradient&, const void*, float*, size_t) noexcept;

// By clamp, multiplication in place of division, mean: bits 0, 1, 2.
template <class Type, size_t kChoice>
void scale_columns(const ScaleGradient& scale, const void* gradient, float* out,
                   size_t columns) noexcept {
  for_columns(Scale < Type, (kChoice & 1) != 0, (kChoice & 2) != 0,
              (kChoice & 4) != 0 > {.gradient = static_cast<const typename Type::Stored*>(gradient),
                                    .out = out,
                                    .divisor = Divisor(scale.divisor),
                                    .most = hn::Set(kFloats, scale.max_gradient),
                                    .length = hn::Set(kFloats, scale.length)},
              columns);
}

template <class Type, size_t... kChoice>
constexpr std::array<ScaleColumns, sizeof...(kChoice)> scale_table(
    std::index_sequence<kChoice...>) {
  return {scale_columns<Type, kChoice>...};
}

template <class Type>
inline constexpr auto kScale = scale_table<Type>(std::make_index_sequence<8>());
inline constexpr std::array kScaleTable = {kScale<Float32Rows>, kScale<HalfRows<Float16>>,
                                           kScale<HalfRows<Bfloat16>>};

void scale_gradient(const ScaleGradient& scale, const void* gradient, float* out,
                    int64_t columns) noexcept {
  const size_t choice = (scale.max_gradient != 0 ? 1 : 0) |
                        (Divisor(scale.divisor).multiplies() ? 2 : 0) | (scale.length != 1 ? 4 : 0);
  kScaleTable[static_cast<size_t>(scale.element)][choice](scale, gradient, out,
                                                          static_cast<size_t>(columns));
}

void widen(const void* in, Element element, float* out, int64_t count) noexcept {
  const auto columns = static_cast<size_t>(count);
  switch (element) {
    case Element::kFloat32:
      std::copy_n(static_cast<const float*>(in), columns, out);
      break;
    case Element::kFloat16:
      for_columns(WidenColumns<HalfRows<Float16>>{static_cast<const uint16_t*>(in), out}, columns);
      break;
    case Element::kBfloat16:
      for_columns(WidenColumns<HalfRows<Bfloat16>>{static_cast<const uint16_t*>(in), out}, columns);
      break;
  }
}

void narrow(const float* in, Element element, void* out, int64_t count) noexcept {
  const auto columns = static_cast<size_t>(count);
  switch (element) {
    case Element::kFloat32:
      std::copy_n(in, columns, static_cast<float*>(out));
      break;
    case Element::kFloat16:
      for_columns(NarrowColumns<Float16>{in, static_cast<uint16_t*>(out)}, columns);
      break;
    case Element::kBfloat16:
      for_columns(NarrowColumns<Bfloat16>{in, static_cast<uint16_t*>(out)}, columns);
      break;
  }
}

template <class Type>
struct Dot {
  static constexpr size_t kSums = 1;
  const typename Type::Stored* row;
  const float* y;

  // What a tail has not is 0: it leaves its lane as it is.
  template <bool kTail>
  HWY_INLINE void vector(size_t column, const Tail& tail, Vector* lane) const {
    lane[0] = hn::MulAdd(Type::template load<kTail>(row + column, tail),
                         load<kTail>(y + column, tail), lane[0]);
  }
};

template <class Type>
float dot_of(const void* row, const float* y, int64_t columns) noexcept {
  float out = 0;
  sum_columns(Dot<Type>{static_cast<const typename Type::Stored*>(row), y},
              static_cast<size_t>(columns), &out);
  return out;
}

float dot(const void* row, Element element, const float* y, int64_t columns) noexcept {
  switch (element) {
    case Element::kFloat16:
      return dot_of<HalfRows<Float16>>(row, y, columns);
    case Element::kBfloat16:
      return dot_of<HalfRows<Bfloat16>>(row, y, columns);
    case Element::kFloat32:
      break;
  }
  return dot_of<Float32Rows>(row, y, columns);
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

bool narrow_ids(const int64_t* ids, int64_t rows, int32_t* out, int64_t count) noexcept {
  using Longs = hn::ScalableTag<uint64_t>;
  using Halved = hn::Rebind<uint32_t, Longs>;
  constexpr Longs kLongs;
  constexpr Halved kHalved;
  constexpr auto kIds = static_cast<int64_t>(HWY_LANES(uint64_t));
  // The sign bit of an id below 0 is set; of one above the last, that of its distance to it.
  auto signs = hn::Zero(kLongs);
  const auto last = hn::Set(kLongs, static_cast<uint64_t>(rows) - 1);
  int64_t i = 0;
  for (; i + kIds <= count; i += kIds) {
    const auto id = hn::BitCast(kLongs, hn::LoadU(hn::ScalableTag<int64_t>(), ids + i));
    signs = hn::Or(signs, hn::Or(id, hn::Sub(last, id)));
    hn::StoreU(hn::BitCast(hn::RebindToSigned<Halved>(), hn::TruncateTo(kHalved, id)),
               hn::RebindToSigned<Halved>(), out + i);
  }
  HWY_ALIGN uint64_t of_lane[HWY_LANES(uint64_t)];
  hn::Store(signs, kLongs, of_lane);
  uint64_t sign = 0;
  for (const uint64_t lane : of_lane) sign |= lane;
  for (; i < count; ++i) {
    const auto id = static_cast<uint64_t>(ids[i]);
    sign |= id | (static_cast<uint64_t>(rows) - 1 - id);
    out[i] = static_cast<int32_t>(ids[i]);
  }
  return sign >> 63 == 0;
}

}  // namespace shardrec::compute::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
