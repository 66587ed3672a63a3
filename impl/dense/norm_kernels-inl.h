// Layer norm of kernels.h, for the instruction set of HWY_TARGET. Included once per set.
#if defined(SHARDREC_DENSE_NORM_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_DENSE_NORM_KERNELS
#undef SHARDREC_DENSE_NORM_KERNELS
#else
#define SHARDREC_DENSE_NORM_KERNELS
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "dense/kernels.h"
#include "dense/layer_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::dense::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of a term over columns [0, cols) in 16 lanes, as kernels.h says. term(tag, c, sum) adds the
// columns from c on, one for each lane of the tag, to the lanes of sum.
template <class Term>
HWY_INLINE float lane_sum(int64_t cols, const Term& term) {
  constexpr size_t kSumLanes = 16;
  const hn::CappedTag<float, kSumLanes> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  hn::Vec<decltype(d)> sums[kSumLanes / kLanes];
  for (auto& sum : sums) sum = hn::Zero(d);
  int64_t c = 0;
  for (; c + static_cast<int64_t>(kSumLanes) <= cols; c += kSumLanes) {
    for (size_t v = 0; v < kSumLanes / kLanes; ++v) {
      sums[v] = term(d, c + static_cast<int64_t>(v * kLanes), sums[v]);
    }
  }
  alignas(64) float lanes[kSumLanes];
  for (size_t v = 0; v < kSumLanes / kLanes; ++v) hn::Store(sums[v], d, lanes + v * kLanes);
  const hn::CappedTag<float, 1> one;
  for (float* lane = lanes; c < cols; ++c, ++lane) {
    *lane = hn::GetLane(term(one, c, hn::Set(one, *lane)));
  }
  for (size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

HWY_ATTR inline void layer_norm_forward(const LayerNormForward& layer, const core::Matrix& x,
                                        const core::Matrix& y, float* statistics) noexcept {
  const auto columns = static_cast<float>(x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* from = x.row(r);
    float* to = y.row(r);
    const float mean =
        lane_sum(x.cols, [&](auto d, int64_t c, auto sum)
                             HWY_ATTR { return hn::Add(sum, hn::LoadU(d, from + c)); }) /
        columns;
    const float variance = lane_sum(x.cols,
                                    [&](auto d, int64_t c, auto sum) HWY_ATTR {
                                      const auto off =
                                          hn::Sub(hn::LoadU(d, from + c), hn::Set(d, mean));
                                      return fma(d, off, off, sum);
                                    }) /
                           columns;
    const float scale = 1 / std::sqrt(variance + layer.epsilon);
    for_lanes(0, x.cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto off = hn::Sub(hn::LoadU(d, from + c), hn::Set(d, mean));
      const auto weighted =
          hn::Mul(hn::Mul(off, hn::Set(d, scale)), hn::LoadU(d, layer.weight + c));
      hn::StoreU(hn::Add(weighted, hn::LoadU(d, layer.bias + c)), d, to + c);
    });
    if (statistics == nullptr) continue;
    statistics[2 * r] = mean;
    statistics[2 * r + 1] = scale;
  }
}

HWY_ATTR inline void layer_norm_backward(const LayerNormBackward& layer, const core::Matrix& x,
                                         const core::Matrix& dy, const core::Matrix& dx) noexcept {
  const auto columns = static_cast<float>(x.cols);
  std::fill_n(layer.weight_sums, x.cols, 0.0F);
  std::fill_n(layer.bias_sums, x.cols, 0.0F);
  for (int64_t r = 0; r < x.rows; ++r) {
    const float mean = layer.statistics[2 * r], scale = layer.statistics[2 * r + 1];
    const float *from = x.row(r), *above = dy.row(r);
    const auto normal = [&](auto d, int64_t c) HWY_ATTR {
      return hn::Mul(hn::Sub(hn::LoadU(d, from + c), hn::Set(d, mean)), hn::Set(d, scale));
    };
    for_lanes(0, x.cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto gradient = hn::LoadU(d, above + c);
      float *weight = layer.weight_sums + c, *bias = layer.bias_sums + c;
      hn::StoreU(fma(d, gradient, normal(d, c), hn::LoadU(d, weight)), d, weight);
      hn::StoreU(hn::Add(hn::LoadU(d, bias), gradient), d, bias);
    });
    if (dx.data == nullptr) continue;
    const auto weighted = [&](auto d, int64_t c) HWY_ATTR {
      return hn::Mul(hn::LoadU(d, above + c), hn::LoadU(d, layer.weight + c));
    };
    const float mean_gradient =
        lane_sum(x.cols, [&](auto d, int64_t c, auto sum)
                             HWY_ATTR { return hn::Add(sum, weighted(d, c)); }) /
        columns;
    const float mean_product =
        lane_sum(x.cols, [&](auto d, int64_t c, auto sum)
                             HWY_ATTR { return fma(d, weighted(d, c), normal(d, c), sum); }) /
        columns;
    float* to = dx.row(r);
    for_lanes(0, x.cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto off = hn::Sub(weighted(d, c), hn::Set(d, mean_gradient));
      const auto along = hn::Mul(normal(d, c), hn::Set(d, mean_product));
      hn::StoreU(hn::Mul(hn::Sub(off, along), hn::Set(d, scale)), d, to + c);
    });
  }
}

}  // namespace shardrec::dense::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
