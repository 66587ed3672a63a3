#include "dense/layers/forward.h"

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kWideLayer = int64_t{1} << 18;  // weights
constexpr int64_t kSmallBatch = 1024;

// y = x W^T, W [y.cols, x.cols].
void multiply(const Gemm& gemm, const core::Matrix& x, const float* weight,
              const core::Matrix& y) noexcept {
  const shardrec_gemm job{.m = x.rows,
                          .n = y.cols,
                          .k = x.cols,
                          .a = x.data,
                          .b = weight,
                          .c = y.data,
                          .lda = x.stride,
                          .ldb = x.cols,
                          .ldc = y.stride,
                          .beta = 0,
                          .transpose_a = 0,
                          .transpose_b = 1};
  gemm.sgemm(&job);
}

void linear(const Gemm& gemm, const LayerValues& layer, const ForwardRows& rows) noexcept {
  const core::Matrix& y = rows.y;
  multiply(gemm, rows.x, layer.of(Role::kWeight), y);
  round_rows(y, rows.rounding.result);
  kernels().bias_activation(y.data, y.stride, y.rows, y.cols, layer.of(Role::kBias),
                            layer.shape.activation == SHARDREC_ACTIVATION_RELU);
  round_rows(y, rows.rounding.result);
}

void cross(const Gemm& gemm, const LayerValues& layer, const ForwardRows& rows) noexcept {
  const bool is_low = layer.shape.rank != 0;
  if (is_low) {
    multiply(gemm, rows.x, layer.of(Role::kDown), rows.low);
    round_rows(rows.low, rows.rounding.inner);
  }
  multiply(gemm, is_low ? rows.low : rows.x, layer.of(Role::kWeight), rows.product);
  round_rows(rows.product, rows.rounding.inner);
  kernels().cross_forward(layer.of(Role::kBias), rows.origin, rows.x, rows.product, rows.y);
  round_rows(rows.product, rows.rounding.inner);
  round_rows(rows.y, rows.rounding.result);
}

void layer_norm(const Gemm& /*gemm*/, const LayerValues& layer, const ForwardRows& rows) noexcept {
  kernels().layer_norm_forward({.weight = layer.of(Role::kWeight),
                                .bias = layer.of(Role::kBias),
                                .epsilon = static_cast<float>(layer.shape.epsilon)},
                               rows.x, rows.y, rows.statistics);
  round_rows(rows.y, rows.rounding.result);
}

void dropout(const Gemm& /*gemm*/, const LayerValues& /*layer*/, const ForwardRows& rows) noexcept {
  if (rows.mask != nullptr) {
    kernels().dropout(*rows.mask, rows.first_row, rows.x, rows.y);
    round_rows(rows.y, rows.rounding.result);
    return;
  }
  for (int64_t r = 0; r < rows.x.rows; ++r) std::copy_n(rows.x.row(r), rows.x.cols, rows.y.row(r));
}

using Forward = void (*)(const Gemm&, const LayerValues&, const ForwardRows&) noexcept;
constexpr std::array<Forward, 4> kForward = {&linear, &cross, &layer_norm, &dropout};  // by kind

}  // namespace

void forward_layer(const Gemm& gemm, const LayerValues& layer, const ForwardRows& rows) noexcept {
  kForward[static_cast<size_t>(layer.shape.kind)](gemm, layer, rows);
}

core::Matrix with_blas_stride(core::Matrix matrix, const char* name) {
  if (matrix.rows <= 1) matrix.stride = matrix.cols;
  if (matrix.stride > std::numeric_limits<int32_t>::max()) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the row stride of ", name, " is ", matrix.stride,
                              " elements; at most 2147483647 is accepted"),
               {.value = matrix.stride});
  }
  return matrix;
}

void require_shape(const core::Matrix& matrix, const char* name, int64_t rows, int64_t cols) {
  if (matrix.rows == rows && matrix.cols == cols) return;
  core::fail(SHARDREC_INVALID_ARGUMENT,
             core::sentence(name, " has shape [", matrix.rows, ", ", matrix.cols, "]; [", rows,
                            ", ", cols, "] is accepted"));
}

void round_rows(const core::Matrix& matrix, compute::Element to) noexcept {
  if (to == compute::Element::kFloat32) return;
  const auto round = rounding_to(to, kernels());
  for (int64_t r = 0; r < matrix.rows; ++r) round(matrix.row(r), matrix.row(r), matrix.cols);
}

core::Matrix rows_of(const core::Matrix& matrix, int64_t first, int64_t rows) noexcept {
  if (matrix.data == nullptr) return {};
  return {matrix.row(first), rows, matrix.cols, matrix.stride};
}

bool is_wide(const LayerShape& shape, int64_t inputs) noexcept {
  return std::ranges::any_of(weights_of(shape, inputs), [](const WeightShape& weight) {
    return weight.inputs * weight.outputs >= kWideLayer;
  });
}

int64_t tile_rows(int64_t batch, bool is_wide) noexcept {
  return batch <= kSmallBatch && !is_wide ? kMostTileRows / 2 : kMostTileRows;
}

}  // namespace shardrec::dense
