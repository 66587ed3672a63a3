#include "dense/layers/backward.h"

#include <algorithm>
#include <array>

namespace shardrec::dense {
namespace {

// dx = dz W, W [dz.cols, dx.cols].
void multiply_back(const Gemm& gemm, const core::Matrix& dz, const float* weight,
                   const core::Matrix& dx) noexcept {
  const shardrec_gemm job{.m = dz.rows,
                          .n = dx.cols,
                          .k = dz.cols,
                          .a = dz.data,
                          .b = weight,
                          .c = dx.data,
                          .lda = dz.stride,
                          .ldb = dx.cols,
                          .ldc = dx.stride,
                          .beta = 0,
                          .transpose_a = 0,
                          .transpose_b = 0};
  gemm.sgemm(&job);
}

void add_rows(const core::Matrix& x, const core::Matrix& sum) noexcept {
  const auto add = kernels().add;
  for (int64_t r = 0; r < x.rows; ++r) add(x.row(r), sum.row(r), x.cols);
}

void linear_back(const Gemm& gemm, const LayerValues& layer, const BackwardRows& rows) noexcept {
  const Kernels& table = kernels();
  const core::Matrix &y = rows.y, &dy = rows.dy, &dz = rows.dz;
  if (layer.shape.activation == SHARDREC_ACTIVATION_RELU) {
    table.relu_backward(y.data, y.stride, dy.data, dy.stride, dz.data, dz.stride, dz.rows, dz.cols);
  }
  table.column_sums(dz.data, dz.stride, dz.rows, dz.cols, rows.column_sums);
  if (rows.dx.data == nullptr) return;
  multiply_back(gemm, dz, layer.of(Role::kWeight), rows.dx);
  round_rows(rows.dx, rows.rounding.result);
}

// dz = dy * x0, dx0 = the sum of dy * product over the run, dx = dz W + dy, of the run's first layer
// + dx0: in this order.
void cross_back(const Gemm& gemm, const LayerValues& layer, const BackwardRows& rows) noexcept {
  const Kernels& table = kernels();
  const core::Matrix& dz = rows.dz;
  table.cross_backward({.origin = rows.origin, .product = rows.product, .dy = rows.dy, .dz = dz},
                       rows.origin_gradient, rows.starts_origin_sum);
  round_rows(dz, rows.rounding.inner);
  table.column_sums(dz.data, dz.stride, dz.rows, dz.cols, rows.column_sums);
  const bool is_low = layer.shape.rank != 0;
  if (is_low) {
    multiply_back(gemm, dz, layer.of(Role::kWeight), rows.low_gradient);
    round_rows(rows.low_gradient, rows.rounding.inner);
  }
  if (rows.dx.data == nullptr) return;
  multiply_back(gemm, is_low ? rows.low_gradient : dz,
                layer.of(is_low ? Role::kDown : Role::kWeight), rows.dx);
  round_rows(rows.dx, rows.rounding.result);
  add_rows(rows.dy, rows.dx);
  round_rows(rows.dx, rows.rounding.result);
  if (!rows.adds_origin_gradient) return;
  add_rows(rows.origin_gradient, rows.dx);
  round_rows(rows.dx, rows.rounding.result);
}

void layer_norm_back(const Gemm& /*gemm*/, const LayerValues& layer,
                     const BackwardRows& rows) noexcept {
  kernels().layer_norm_backward({.weight = layer.of(Role::kWeight),
                                 .statistics = rows.statistics,
                                 .weight_sums = rows.column_sums,
                                 .bias_sums = rows.column_sums + layer.inputs},
                                rows.x, rows.dy, rows.dx);
  if (rows.dx.data != nullptr) round_rows(rows.dx, rows.rounding.result);
}

void dropout_back(const Gemm& /*gemm*/, const LayerValues& /*layer*/,
                  const BackwardRows& rows) noexcept {
  const core::Matrix &dy = rows.dy, &dx = rows.dx;
  if (dx.data == nullptr) return;
  if (rows.mask != nullptr) {
    kernels().dropout(*rows.mask, rows.first_row, dy, dx);
    round_rows(dx, rows.rounding.result);
    return;
  }
  for (int64_t r = 0; r < dy.rows; ++r) std::copy_n(dy.row(r), dy.cols, dx.row(r));
}

using Backward = void (*)(const Gemm&, const LayerValues&, const BackwardRows&) noexcept;
constexpr std::array<Backward, 4> kBackward = {&linear_back, &cross_back, &layer_norm_back,
                                               &dropout_back};  // by kind

}  // namespace

void backward_layer(const Gemm& gemm, const LayerValues& layer, const BackwardRows& rows) noexcept {
  kBackward[static_cast<size_t>(layer.shape.kind)](gemm, layer, rows);
}

}  // namespace shardrec::dense
