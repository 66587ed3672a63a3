// Element-wise kernels of kernels.h, for the instruction set of HWY_TARGET. Included once per set.
#if defined(SHARDREC_DENSE_LAYER_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_DENSE_LAYER_KERNELS
#undef SHARDREC_DENSE_LAYER_KERNELS
#else
#define SHARDREC_DENSE_LAYER_KERNELS
#endif

#include <hwy/highway.h>

#include "dense/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::dense::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

HWY_ATTR inline void column_sums(const float* x, int64_t stride, int64_t rows, int64_t cols,
                                 float* sums) noexcept {
  for (int64_t c = 0; c < cols; ++c) sums[c] = 0;
  for (int64_t r = 0; r < rows; ++r) add(x + r * stride, sums, cols);
}

// The gradient as kernels.h defines g, from the weight after decoupled decay is no concern of it:
// only one of l2 and keep differs from its neutral value.
template <class D, class V>
HWY_INLINE V effective_gradient(D d, const ParameterUpdate& update, V weight, V gradient) {
  if (update.max_gradient > 0) {
    const V high = hn::Set(d, update.max_gradient);
    const V low = hn::Neg(high);
    gradient = hn::IfThenElse(hn::Gt(gradient, high), high, gradient);
    gradient = hn::IfThenElse(hn::Lt(gradient, low), low, gradient);
  }
  if (update.l2 != 0) gradient = hn::Add(gradient, hn::Mul(hn::Set(d, update.l2), weight));
  return gradient;
}

HWY_ATTR inline void sgd(const ParameterUpdate& update, int64_t begin, int64_t end) noexcept {
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto weight = hn::LoadU(d, update.weights + i);
    const auto g = effective_gradient(d, update, weight, hn::LoadU(d, update.gradients + i));
    const auto kept = hn::Mul(weight, hn::Set(d, update.keep));
    const auto step = hn::Mul(hn::Set(d, update.learning_rate), g);
    hn::StoreU(hn::Sub(kept, step), d, update.weights + i);
  });
}

HWY_ATTR inline void adagrad(const ParameterUpdate& update, int64_t begin, int64_t end) noexcept {
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto weight = hn::LoadU(d, update.weights + i);
    const auto g = effective_gradient(d, update, weight, hn::LoadU(d, update.gradients + i));
    const auto kept = hn::Mul(weight, hn::Set(d, update.keep));
    const auto h = hn::Add(hn::LoadU(d, update.first + i), hn::Mul(g, g));
    hn::StoreU(h, d, update.first + i);
    const auto scale = hn::Add(hn::Sqrt(h), hn::Set(d, update.eps));
    const auto step = hn::Div(hn::Mul(hn::Set(d, update.learning_rate), g), scale);
    hn::StoreU(hn::Sub(kept, step), d, update.weights + i);
  });
}

HWY_ATTR inline void adam(const ParameterUpdate& update, int64_t begin, int64_t end) noexcept {
  for_lanes(begin, end, [&](auto d, int64_t i) HWY_ATTR {
    const auto weight = hn::LoadU(d, update.weights + i);
    const auto g = effective_gradient(d, update, weight, hn::LoadU(d, update.gradients + i));
    const auto kept = hn::Mul(weight, hn::Set(d, update.keep));
    const auto m = hn::Add(hn::Mul(hn::Set(d, update.beta1), hn::LoadU(d, update.first + i)),
                           hn::Mul(hn::Set(d, update.one_minus_beta1), g));
    const auto v = hn::Add(hn::Mul(hn::Set(d, update.beta2), hn::LoadU(d, update.second + i)),
                           hn::Mul(hn::Mul(hn::Set(d, update.one_minus_beta2), g), g));
    hn::StoreU(m, d, update.first + i);
    hn::StoreU(v, d, update.second + i);
    const auto mean = hn::Mul(m, hn::Set(d, update.scale1));
    const auto scale =
        hn::Add(hn::Sqrt(hn::Mul(v, hn::Set(d, update.scale2))), hn::Set(d, update.eps));
    const auto step = hn::Div(hn::Mul(hn::Set(d, update.learning_rate), mean), scale);
    hn::StoreU(hn::Sub(kept, step), d, update.weights + i);
  });
}

}  // namespace shardrec::dense::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
