// The inner loops of the layers that are no matrix products, one table per instruction set.
//
// Promises of the numbers: fp32; element-wise formulas as written, each operation rounded (division
// and square root correctly); sums in the order given here, fused where written fma. Hence all sets
// give the same bits. Kernels neither allocate nor throw; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compute/element.h"
#include "core/tensor.h"

namespace shardrec::dense {

// The dot interaction of one sample: vector 0 is dense, vector i > 0 is row i - 1 of embeddings.
struct InteractionShape {
  int64_t features = 0;
  int64_t dim = 0;
};
// Vectors, dense included, rounded up to whole pairs of registers of eight.
constexpr int64_t padded_vectors(const InteractionShape& shape) noexcept {
  return (shape.features + 16) / 16 * 16;
}
// Floats of scratch for one call of either direction.
size_t interaction_scratch(const InteractionShape& shape) noexcept;

// Which elements a dropout layer keeps in a forward (capi's layers.h).
struct DropoutMask {
  uint64_t seed = 0;
  uint32_t layer = 0;
  uint32_t forward = 0;    // forwards in training before this one
  uint32_t threshold = 0;  // words below it drop their element
  float factor = 1;        // of what is kept
};

struct LayerNormForward {
  const float* weight = nullptr;
  const float* bias = nullptr;
  float epsilon = 0;
};

struct LayerNormBackward {
  const float* weight = nullptr;
  const float* statistics = nullptr;  // as layer_norm_forward() wrote them
  float* weight_sums = nullptr;
  float* bias_sums = nullptr;
};

template <class Matrix>
struct CrossBackwardOf {
  Matrix origin;
  Matrix product;  // as cross_forward() wrote it
  Matrix dy;
  Matrix dz;
};
using CrossBackward = CrossBackwardOf<core::Matrix>;

struct Kernels {
  const char* name;  // as compute::Kernels::name

  // y = relu(y + bias) or y + bias, in each of rows rows; relu(NaN) = NaN.
  void (*bias_activation)(float* y, int64_t stride, int64_t rows, int64_t cols, const float* bias,
                          bool relu) noexcept;
  // dz = y <= 0 ? 0 : dy. dz may be dy.
  void (*relu_backward)(const float* y, int64_t y_stride, const float* dy, int64_t dy_stride,
                        float* dz, int64_t dz_stride, int64_t rows, int64_t cols) noexcept;
  // sums[c] = x[0][c] + x[1][c] + ..., from 0.
  void (*column_sums)(const float* x, int64_t stride, int64_t rows, int64_t cols,
                      float* sums) noexcept;
  // sum += x
  void (*add)(const float* x, float* sum, int64_t count) noexcept;
  // x *= factor
  void (*scale)(float* x, float factor, int64_t count) noexcept;
  // y = x, rounded to the type: to nearest, ties to even. y may be x.
  void (*round_float16)(const float* x, float* y, int64_t count) noexcept;
  void (*round_bfloat16)(const float* x, float* y, int64_t count) noexcept;
  // The sum of x[i]^2 in float64, where the squares are exact: 16 lanes (i mod 16), each from 0 in
  // ascending i, then the tree lane[i] += lane[i + 8], + 4, + 2, + 1.
  double (*square_sum)(const float* x, int64_t count) noexcept;

  // product += bias; y = origin * product + x. y may be product.
  void (*cross_forward)(const float* bias, const core::Matrix& origin, const core::Matrix& x,
                        const core::Matrix& product, const core::Matrix& y) noexcept;
  // dz = dy * origin, and where sum.data is not null sum += dy * product, or = where it starts.
  void (*cross_backward)(const CrossBackward& rows, const core::Matrix& sum, bool starts) noexcept;

  // Sums over a row have 16 lanes: column c goes to lane c mod 16, from 0 and by ascending c, then the tree
  // lane[i] += lane[i + 8], + 4, + 2, + 1. n: the number of columns.
  //   mean = sum of x / n; var = (sum by fma(x - mean, x - mean, lane)) / n; r = 1 / sqrt(var + epsilon);
  //   y = (x - mean) * r * weight + bias, from left to right
  // statistics: mean, r of each row; null: not wanted.
  void (*layer_norm_forward)(const LayerNormForward& layer, const core::Matrix& x,
                             const core::Matrix& y, float* statistics) noexcept;
  // h = (x - mean) * r; g = dy * weight; a = sum of g / n; b = (sum by fma(g, h, lane)) / n;
  //   dx = ((g - a) - h * b) * r
  // weight_sums: fma(dy, h, sum) and bias_sums: sum + dy over the rows, from 0. dx.data null: not wanted.
  void (*layer_norm_backward)(const LayerNormBackward& layer, const core::Matrix& x,
                              const core::Matrix& dy, const core::Matrix& dx) noexcept;

  // y = x * factor where the word of the element is at least the threshold, else 0. x begins at row
  // first_row of its batch. y may be x.
  void (*dropout)(const DropoutMask& mask, int64_t first_row, const core::Matrix& x,
                  const core::Matrix& y) noexcept;

  // out = the dense vector, then for i = 1.., j < i: the dot product of vectors i and j by
  // fma(i[c], j[c], sum) from 0 in ascending c.
  void (*interaction_forward)(const InteractionShape& shape, const float* dense,
                              const float* embeddings, float* out, float* scratch) noexcept;
  // Gradient of vector i: from 0 (vector 0: from the gradient of the copied dense vector) in
  // ascending j by fma(gradient of dot (i, j), j[c], sum), where that of (i, i) is 0.
  void (*interaction_backward)(const InteractionShape& shape, const float* dense,
                               const float* embeddings, const float* out_gradient,
                               float* dense_gradient, float* embedding_gradient,
                               float* scratch) noexcept;
};

// Of a set, what rounds to a type of 16 bits.
inline auto rounding_to(compute::Element element, const Kernels& set) noexcept {
  return element == compute::Element::kFloat16 ? set.round_float16 : set.round_bfloat16;
}

// The set of the name that compute::cpu_kernels() has now, so that one switch rules both.
const Kernels& kernels();

}  // namespace shardrec::dense
