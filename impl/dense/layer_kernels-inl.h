// Element-wise kernels of kernels.h, for the instruction set of HWY_TARGET. Included once per set.
#if defined(SHARDREC_DENSE_LAYER_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_DENSE_LAYER_KERNELS
#undef SHARDREC_DENSE_LAYER_KERNELS
#else
#define SHARDREC_DENSE_LAYER_KERNELS
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compute/math/half.h"
#include "dense/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::dense::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// a * b + sum, rounded once.
template <class D, class V>
HWY_INLINE V fma(D d, V a, V b, V sum) {
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  // Highway's own rounds the product there.
  alignas(16) float x[4];
  alignas(16) float y[4];
  alignas(16) float z[4];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  hn::Store(sum, d, z);
  for (size_t i = 0; i < hn::Lanes(d); ++i) z[i] = std::fma(x[i], y[i], z[i]);
  return hn::Load(d, z);
#else
  (void)d;
  return hn::MulAdd(a, b, sum);
#endif
}

// Calls body(tag, i) for vectors from begin on and then, with a tag of one lane, for what is left.
template <class Body>
HWY_INLINE void for_lanes(int64_t begin, int64_t end, const Body& body) {
  const hn::ScalableTag<float> full;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(full));
  int64_t i = begin;
  for (; i + lanes <= end; i += lanes) body(full, i);
  for (; i < end; ++i) body(one, i);
}

HWY_ATTR inline void bias_activation(float* y, int64_t stride, int64_t rows, int64_t cols,
                                     const float* bias, bool relu) noexcept {
  for (int64_t r = 0; r < rows; ++r, y += stride) {
    if (relu) {
      for_lanes(0, cols, [&](auto d, int64_t i) HWY_ATTR {
        const auto sum = hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, bias + i));
        hn::StoreU(hn::IfThenZeroElse(hn::Lt(sum, hn::Zero(d)), sum), d, y + i);
      });
    } else {
      for_lanes(0, cols, [&](auto d, int64_t i) HWY_ATTR {
        hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, bias + i)), d, y + i);
      });
    }
  }
}

HWY_ATTR inline void relu_backward(const float* y, int64_t y_stride, const float* dy,
                                   int64_t dy_stride, float* dz, int64_t dz_stride, int64_t rows,
                                   int64_t cols) noexcept {
  for (int64_t r = 0; r < rows; ++r, y += y_stride, dy += dy_stride, dz += dz_stride) {
    for_lanes(0, cols, [&](auto d, int64_t i) HWY_ATTR {
      const auto off = hn::Le(hn::LoadU(d, y + i), hn::Zero(d));
      hn::StoreU(hn::IfThenZeroElse(off, hn::LoadU(d, dy + i)), d, dz + i);
    });
  }
}

HWY_ATTR inline void add(const float* x, float* sum, int64_t count) noexcept {
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), hn::LoadU(d, x + i)), d, sum + i);
  });
}

HWY_ATTR inline void scale(float* x, float factor, int64_t count) noexcept {
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  });
}

// Any NaN becomes the one of compute/element.h. Beside 0.5 the last place of a float is 2^-24, that of a number of
// float16 that is not normal: the sum rounds.
HWY_ATTR inline void round_float16(const float* x, float* y, int64_t count) noexcept {
  using compute::math::Float16;
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> words;
    const auto number = hn::LoadU(d, x + i);
    const auto magnitude = hn::Abs(number);
    const auto bits = hn::BitCast(words, magnitude);
    const auto odd = hn::And(hn::ShiftRight<Float16::kDropped>(bits), hn::Set(words, 1));
    const auto nearest = hn::Add(bits, hn::Add(hn::Set(words, 0xFFF), odd));
    const auto normal = hn::BitCast(d, hn::And(nearest, hn::Set(words, 0xFFFFE000)));
    const auto half = hn::Set(d, 0.5F);
    const auto subnormal = hn::Sub(hn::Add(magnitude, half), half);
    const auto finite = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x1p-14F)), subnormal, normal);
    const auto infinity = hn::BitCast(d, hn::Set(words, compute::math::kInfinity32));
    const auto rounded = hn::IfThenElse(hn::Lt(finite, hn::Set(d, 0x1p16F)), finite, infinity);
    const auto nan = hn::BitCast(d, hn::Set(words, compute::math::kNan32));
    hn::StoreU(hn::IfThenElse(hn::Eq(number, number), hn::CopySign(rounded, number), nan), d,
               y + i);
  });
}

// The same.
HWY_ATTR inline void round_bfloat16(const float* x, float* y, int64_t count) noexcept {
  for_lanes(0, count, [&](auto d, int64_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> words;
    const auto number = hn::LoadU(d, x + i);
    const auto bits = hn::BitCast(words, number);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
    const auto nearest = hn::Add(bits, hn::Add(hn::Set(words, 0x7FFF), odd));
    const auto rounded = hn::BitCast(d, hn::And(nearest, hn::Set(words, 0xFFFF0000)));
    const auto nan = hn::BitCast(d, hn::Set(words, compute::math::kNan32));
    hn::StoreU(hn::IfThenElse(hn::Eq(number, number), rounded, nan), d, y + i);
  });
}

HWY_ATTR inline double square_sum(const float* x, int64_t count) noexcept {
  constexpr size_t kSumLanes = 16;
  const hn::CappedTag<double, kSumLanes> d;
  const hn::Rebind<float, decltype(d)> narrow;
  constexpr size_t kLanes = hn::MaxLanes(d);
  hn::Vec<decltype(d)> sums[kSumLanes / kLanes];
  for (auto& sum : sums) sum = hn::Zero(d);
  const auto add_lanes = [&](const float* from) HWY_ATTR {
    for (size_t v = 0; v < kSumLanes / kLanes; ++v) {
      const auto wide = hn::PromoteTo(d, hn::LoadU(narrow, from + v * kLanes));
      sums[v] = hn::MulAdd(wide, wide, sums[v]);
    }
  };
  constexpr auto kWhole = static_cast<int64_t>(kSumLanes);
  int64_t i = 0;
  for (; i + kWhole <= count; i += kWhole) add_lanes(x + i);
  if (i < count) {
    // Lanes without a number add +0, which changes none.
    std::array<float, kSumLanes> rest{};
    std::copy(x + i, x + count, rest.begin());
    add_lanes(rest.data());
  }
  std::array<double, kSumLanes> lanes{};
  for (size_t v = 0; v < kSumLanes / kLanes; ++v) hn::StoreU(sums[v], d, lanes.data() + v * kLanes);
  for (size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

HWY_ATTR inline void column_sums(const float* x, int64_t stride, int64_t rows, int64_t cols,
                                 float* sums) noexcept {
  for (int64_t c = 0; c < cols; ++c) sums[c] = 0;
  for (int64_t r = 0; r < rows; ++r) add(x + r * stride, sums, cols);
}

HWY_ATTR inline void cross_forward(const float* bias, const core::Matrix& origin,
                                   const core::Matrix& x, const core::Matrix& product,
                                   const core::Matrix& y) noexcept {
  for (int64_t r = 0; r < x.rows; ++r) {
    const float *from = x.row(r), *first = origin.row(r);
    float *u = product.row(r), *to = y.row(r);
    for_lanes(0, x.cols, [&](auto d, int64_t i) HWY_ATTR {
      const auto value = hn::Add(hn::LoadU(d, u + i), hn::LoadU(d, bias + i));
      const auto out = hn::Add(hn::Mul(hn::LoadU(d, first + i), value), hn::LoadU(d, from + i));
      hn::StoreU(value, d, u + i);
      hn::StoreU(out, d, to + i);
    });
  }
}

HWY_ATTR inline void cross_backward(const CrossBackward& rows, const core::Matrix& sum,
                                    bool starts) noexcept {
  for (int64_t r = 0; r < rows.dy.rows; ++r) {
    const float *dy = rows.dy.row(r), *first = rows.origin.row(r), *u = rows.product.row(r);
    float* dz = rows.dz.row(r);
    for_lanes(0, rows.dy.cols, [&](auto d, int64_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, first + i)), d, dz + i);
    });
    if (sum.data == nullptr) continue;
    float* to = sum.row(r);
    for_lanes(0, rows.dy.cols, [&](auto d, int64_t i) HWY_ATTR {
      const auto part = hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, u + i));
      hn::StoreU(starts ? part : hn::Add(hn::LoadU(d, to + i), part), d, to + i);
    });
  }
}

}  // namespace shardrec::dense::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
