// The dot interaction of kernels.h, for the instruction set of HWY_TARGET. Included once per set.
//
// Forward: with the vectors transposed, a vector register holds dot products of vector i with
// consecutive j, so that every product is one chain of fused multiply-adds over the columns and no
// sum runs across lanes. Backward: registers run along the columns.
#if defined(SHARDREC_DENSE_INTERACTION_KERNELS) == defined(HWY_TARGET_TOGGLE)
#ifdef SHARDREC_DENSE_INTERACTION_KERNELS
#undef SHARDREC_DENSE_INTERACTION_KERNELS
#else
#define SHARDREC_DENSE_INTERACTION_KERNELS
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "dense/kernels.h"
#include "dense/layer_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shardrec::dense::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Stores the first n lanes, none when n <= 0.
template <class D, class V>
HWY_INLINE void store_first(D d, V value, int64_t n, float* out) {
  if (n >= static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(value, d, out);
  } else if (n > 0) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    hn::BlendedStore(value, hn::FirstN(d, static_cast<size_t>(n)), d, out);
#else
    // Highway's blended store reads and writes all lanes there.
    alignas(16) float lanes[4];
    hn::Store(value, d, lanes);
    std::copy_n(lanes, n, out);
#endif
  }
}

// The triangle's rows are short: wider registers would compute mostly what is thrown away.
using DotTag = hn::CappedTag<float, 8>;

// Four rows of the lower triangle, columns from j on: one or two registers each. x: the four
// vectors; transposed: [dim, padded] from column j on; out: where each row's product with j goes;
// count: how many products of each row are wanted from there.
template <int kRegisters>
HWY_INLINE void dot_block(int64_t dim, int64_t padded, const float* const (&x)[4],
                          const float* transposed, float* const (&out)[4],
                          const int64_t (&count)[4]) {
  const DotTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto s00 = hn::Zero(d), s10 = s00, s20 = s00, s30 = s00;
  auto s01 = s00, s11 = s00, s21 = s00, s31 = s00;
  for (int64_t c = 0; c < dim; ++c, transposed += padded) {
    const auto x0 = hn::Set(d, x[0][c]);
    const auto x1 = hn::Set(d, x[1][c]);
    const auto x2 = hn::Set(d, x[2][c]);
    const auto x3 = hn::Set(d, x[3][c]);
    const auto low = hn::LoadU(d, transposed);
    s00 = fma(d, x0, low, s00);
    s10 = fma(d, x1, low, s10);
    s20 = fma(d, x2, low, s20);
    s30 = fma(d, x3, low, s30);
    if constexpr (kRegisters == 2) {
      const auto high = hn::LoadU(d, transposed + lanes);
      s01 = fma(d, x0, high, s01);
      s11 = fma(d, x1, high, s11);
      s21 = fma(d, x2, high, s21);
      s31 = fma(d, x3, high, s31);
    }
  }
  store_first(d, s00, count[0], out[0]);
  store_first(d, s10, count[1], out[1]);
  store_first(d, s20, count[2], out[2]);
  store_first(d, s30, count[3], out[3]);
  if constexpr (kRegisters == 2) {
    store_first(d, s01, count[0] - lanes, out[0] + lanes);
    store_first(d, s11, count[1] - lanes, out[1] + lanes);
    store_first(d, s21, count[2] - lanes, out[2] + lanes);
    store_first(d, s31, count[3] - lanes, out[3] + lanes);
  }
}

// out[c * stride + r] = x[r][c]
HWY_INLINE void transpose_four(const float* const (&x)[4], int64_t dim, int64_t stride,
                               float* out) {
  int64_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::CappedTag<float, 4> d;
  for (; c + 4 <= dim; c += 4, out += 4 * stride) {
    const auto x0 = hn::LoadU(d, x[0] + c);
    const auto x1 = hn::LoadU(d, x[1] + c);
    const auto x2 = hn::LoadU(d, x[2] + c);
    const auto x3 = hn::LoadU(d, x[3] + c);
    const auto low01 = hn::InterleaveLower(d, x0, x1);
    const auto low23 = hn::InterleaveLower(d, x2, x3);
    const auto high01 = hn::InterleaveUpper(d, x0, x1);
    const auto high23 = hn::InterleaveUpper(d, x2, x3);
    hn::StoreU(hn::ConcatLowerLower(d, low23, low01), d, out);
    hn::StoreU(hn::ConcatUpperUpper(d, low23, low01), d, out + stride);
    hn::StoreU(hn::ConcatLowerLower(d, high23, high01), d, out + 2 * stride);
    hn::StoreU(hn::ConcatUpperUpper(d, high23, high01), d, out + 3 * stride);
  }
#endif
  for (; c < dim; ++c, out += stride) {
    for (int r = 0; r < 4; ++r) out[r] = x[r][c];
  }
}

HWY_ATTR inline void interaction_forward(const InteractionShape& shape, const float* dense,
                                         const float* embeddings, float* out,
                                         float* scratch) noexcept {
  const int64_t dim = shape.dim;
  const int64_t vectors = shape.features + 1;
  const int64_t padded = padded_vectors(shape);
  const auto lanes = static_cast<int64_t>(hn::Lanes(DotTag()));
  const auto vector = [&](int64_t i) { return i == 0 ? dense : embeddings + (i - 1) * dim; };

  for (int64_t j = 0; j < padded; j += 4) {
    const float* x[4];
    // Products with what stands beyond the last vector are never stored.
    for (int64_t r = 0; r < 4; ++r) x[r] = vector(std::min(j + r, vectors - 1));
    transpose_four(x, dim, padded, scratch + j);
  }

  std::copy_n(dense, dim, out);
  float* const products = out + dim;
  for (int64_t i = 1; i < vectors; i += 4) {
    const int64_t last = std::min<int64_t>(i + 3, vectors - 1);
    for (int64_t j = 0; j < last;) {
      const float* x[4];
      float* to[4];
      int64_t count[4];
      for (int64_t r = 0; r < 4; ++r) {
        const int64_t row = std::min(i + r, last);
        x[r] = vector(row);
        count[r] = i + r <= last ? row - j : 0;
        to[r] = products + row * (row - 1) / 2 + std::min(j, row);
      }
      if (last - j > lanes) {
        dot_block<2>(dim, padded, x, scratch + j, to, count);
        j += 2 * lanes;
      } else {
        dot_block<1>(dim, padded, x, scratch + j, to, count);
        j += lanes;
      }
    }
  }
}

// kRegisters registers of columns, from `column` on, of the gradients of four vectors. weights: of
// each, the gradients of its products with all vectors; start: what its sum starts from, null: 0.
template <int kRegisters, class D>
HWY_INLINE void gradient_block(D d, const InteractionShape& shape, const float* dense,
                               const float* embeddings, int64_t column,
                               const float* const (&weights)[4], const float* const (&start)[4],
                               float* const (&out)[4]) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto first = [&](int r, int64_t offset) HWY_ATTR {
    return start[r] != nullptr ? hn::LoadU(d, start[r] + column + offset) : hn::Zero(d);
  };
  auto s00 = first(0, 0), s10 = first(1, 0), s20 = first(2, 0), s30 = first(3, 0);
  auto s01 = hn::Zero(d), s11 = s01, s21 = s01, s31 = s01;
  if constexpr (kRegisters == 2) {
    s01 = first(0, lanes), s11 = first(1, lanes), s21 = first(2, lanes), s31 = first(3, lanes);
  }
  for (int64_t j = 0; j <= shape.features; ++j) {
    const float* x = (j == 0 ? dense : embeddings + (j - 1) * shape.dim) + column;
    const auto w0 = hn::Set(d, weights[0][j]);
    const auto w1 = hn::Set(d, weights[1][j]);
    const auto w2 = hn::Set(d, weights[2][j]);
    const auto w3 = hn::Set(d, weights[3][j]);
    const auto low = hn::LoadU(d, x);
    s00 = fma(d, w0, low, s00);
    s10 = fma(d, w1, low, s10);
    s20 = fma(d, w2, low, s20);
    s30 = fma(d, w3, low, s30);
    if constexpr (kRegisters == 2) {
      const auto high = hn::LoadU(d, x + lanes);
      s01 = fma(d, w0, high, s01);
      s11 = fma(d, w1, high, s11);
      s21 = fma(d, w2, high, s21);
      s31 = fma(d, w3, high, s31);
    }
  }
  // Rows beyond the last are copies of it: they store the same values once more.
  hn::StoreU(s00, d, out[0] + column);
  hn::StoreU(s10, d, out[1] + column);
  hn::StoreU(s20, d, out[2] + column);
  hn::StoreU(s30, d, out[3] + column);
  if constexpr (kRegisters == 2) {
    hn::StoreU(s01, d, out[0] + column + lanes);
    hn::StoreU(s11, d, out[1] + column + lanes);
    hn::StoreU(s21, d, out[2] + column + lanes);
    hn::StoreU(s31, d, out[3] + column + lanes);
  }
}

HWY_ATTR inline void interaction_backward(const InteractionShape& shape, const float* dense,
                                          const float* embeddings, const float* out_gradient,
                                          float* dense_gradient, float* embedding_gradient,
                                          float* scratch) noexcept {
  const int64_t dim = shape.dim;
  const int64_t vectors = shape.features + 1;

  const float* product = out_gradient + dim;
  for (int64_t i = 0; i < vectors; ++i) {
    for (int64_t j = 0; j < i; ++j, ++product) {
      scratch[i * vectors + j] = *product;
      scratch[j * vectors + i] = *product;
    }
    scratch[i * vectors + i] = 0;
  }

  for (int64_t i = 0; i < vectors; i += 4) {
    const float* weights[4];
    const float* start[4];
    float* to[4];
    for (int64_t r = 0; r < 4; ++r) {
      const int64_t row = std::min(i + r, vectors - 1);
      weights[r] = scratch + row * vectors;
      start[r] = row == 0 ? out_gradient : nullptr;
      to[r] = row == 0 ? dense_gradient : embedding_gradient + (row - 1) * dim;
    }
    int64_t c = 0;
    const auto columns = [&](auto d) HWY_ATTR {
      const auto lanes = static_cast<int64_t>(hn::Lanes(d));
      for (; c + 2 * lanes <= dim; c += 2 * lanes) {
        gradient_block<2>(d, shape, dense, embeddings, c, weights, start, to);
      }
      for (; c + lanes <= dim; c += lanes) {
        gradient_block<1>(d, shape, dense, embeddings, c, weights, start, to);
      }
    };
    columns(hn::ScalableTag<float>());
    columns(hn::CappedTag<float, 4>());
    columns(hn::CappedTag<float, 1>());
  }
}

}  // namespace shardrec::dense::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
