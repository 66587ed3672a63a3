#include "dense/layers/on_device.h"

#include <array>

namespace shardrec::dense {
namespace {

// y = x W^T, W [y.cols, x.cols].
device::Product forward_product(const core::Matrix& x, const float* weight, const core::Matrix& y) {
  return {.m = x.rows,
          .n = y.cols,
          .k = x.cols,
          .a = x.data,
          .b = weight,
          .c = y.data,
          .lda = x.stride,
          .ldb = x.cols,
          .ldc = y.stride,
          .transpose_b = true};
}

// dx = dz W, W [dz.cols, dx.cols].
void multiply_back(const DeviceOperations& on, const core::Matrix& dz, const float* weight,
                   const core::Matrix& dx) {
  on.gemm.multiply({.m = dz.rows,
                    .n = dx.cols,
                    .k = dz.cols,
                    .a = dz.data,
                    .b = weight,
                    .c = dx.data,
                    .lda = dz.stride,
                    .ldb = dx.cols,
                    .ldc = dx.stride});
}

void linear(const DeviceOperations& on, const LayerValues& layer, const ForwardRows& rows) {
  const float* const bias = layer.of(Role::kBias);
  const bool relu = layer.shape.activation == SHARDREC_ACTIVATION_RELU;
  device::Product product = forward_product(rows.x, layer.of(Role::kWeight), rows.y);
  if (!relu) {
    product.epilogue = device::Epilogue::kBias;
    product.bias = const_cast<float*>(bias);
    if (on.gemm.try_multiply(product)) return;
    product.epilogue = device::Epilogue::kNone;
    product.bias = nullptr;
  }
  // A ReLU in the product's kernel would make 0 of NaN.
  on.gemm.multiply(product);
  device::bias_activation(on.stream, rows.y, bias, relu);
}

void cross(const DeviceOperations& on, const LayerValues& layer, const ForwardRows& rows) {
  const bool is_low = layer.shape.rank != 0;
  if (is_low) on.gemm.multiply(forward_product(rows.x, layer.of(Role::kDown), rows.low));
  on.gemm.multiply(
      forward_product(is_low ? rows.low : rows.x, layer.of(Role::kWeight), rows.product));
  device::cross_forward(on.stream, layer.of(Role::kBias), rows.origin, rows.x, rows.product,
                        rows.y);
}

void layer_norm(const DeviceOperations& on, const LayerValues& layer, const ForwardRows& rows) {
  device::layer_norm_forward(on.stream,
                             {.weight = layer.of(Role::kWeight),
                              .bias = layer.of(Role::kBias),
                              .epsilon = static_cast<float>(layer.shape.epsilon)},
                             rows.x, rows.y, rows.statistics);
}

void drop(const DeviceOperations& on, const DropoutMask* mask, const core::Matrix& x,
          const core::Matrix& y) {
  if (mask != nullptr) {
    on.stream.submit();  // the mask is another one in each step: the rest is launched without it
    device::dropout(on.stream, *mask, x, y);
    on.stream.submit();
  } else {
    device::copy_rows(on.stream, x, y);
  }
}

void dropout(const DeviceOperations& on, const LayerValues& /*layer*/, const ForwardRows& rows) {
  drop(on, rows.mask, rows.x, rows.y);
}

void linear_back(const DeviceOperations& on, const LayerValues& layer, const BackwardRows& rows,
                 const device::TileSums& sums) {
  if (layer.shape.activation == SHARDREC_ACTIVATION_RELU) {
    device::relu_backward(on.stream, rows.y, rows.dy, rows.dz);
  }
  device::column_sums(on.stream, rows.dz, sums);
  if (rows.dx.data != nullptr) multiply_back(on, rows.dz, layer.of(Role::kWeight), rows.dx);
}

// In the order of cross_back() in backward.cpp.
void cross_back(const DeviceOperations& on, const LayerValues& layer, const BackwardRows& rows,
                const device::TileSums& sums) {
  const core::Matrix& dz = rows.dz;
  device::cross_backward(on.stream,
                         {.origin = rows.origin, .product = rows.product, .dy = rows.dy, .dz = dz},
                         rows.origin_gradient, rows.starts_origin_sum);
  device::column_sums(on.stream, dz, sums);
  const bool is_low = layer.shape.rank != 0;
  if (is_low) multiply_back(on, dz, layer.of(Role::kWeight), rows.low_gradient);
  if (rows.dx.data == nullptr) return;
  multiply_back(on, is_low ? rows.low_gradient : dz, layer.of(is_low ? Role::kDown : Role::kWeight),
                rows.dx);
  device::add_rows(on.stream, rows.dy, rows.dx);
  if (rows.adds_origin_gradient) device::add_rows(on.stream, rows.origin_gradient, rows.dx);
}

void layer_norm_back(const DeviceOperations& on, const LayerValues& layer, const BackwardRows& rows,
                     const device::TileSums& sums) {
  device::layer_norm_backward(on.stream, layer.of(Role::kWeight), rows.statistics, rows.x, rows.dy,
                              rows.dx, sums);
}

void dropout_back(const DeviceOperations& on, const LayerValues& /*layer*/,
                  const BackwardRows& rows, const device::TileSums& /*sums*/) {
  if (rows.dx.data != nullptr) drop(on, rows.mask, rows.dy, rows.dx);
}

// By kind.
using DeviceForward = void (*)(const DeviceOperations&, const LayerValues&, const ForwardRows&);
constexpr std::array<DeviceForward, 4> kDeviceForward = {&linear, &cross, &layer_norm, &dropout};
using DeviceBackward = void (*)(const DeviceOperations&, const LayerValues&, const BackwardRows&,
                                const device::TileSums&);
constexpr std::array<DeviceBackward, 4> kDeviceBackward = {&linear_back, &cross_back,
                                                           &layer_norm_back, &dropout_back};

}  // namespace

void forward_layer(const DeviceOperations& on, const LayerValues& layer, const ForwardRows& rows) {
  kDeviceForward[static_cast<size_t>(layer.shape.kind)](on, layer, rows);
}

void backward_layer(const DeviceOperations& on, const LayerValues& layer, const BackwardRows& rows,
                    const device::TileSums& sums) {
  kDeviceBackward[static_cast<size_t>(layer.shape.kind)](on, layer, rows, sums);
}

void add_weight_gradient(const DeviceOperations& on, const WeightGradient& gradient,
                         bool accumulate) {
  const core::Matrix &dz = gradient.dz, &x = gradient.x;
  const core::Matrix target{gradient.target, dz.cols, x.cols, x.cols};
  core::Matrix to = target;
  if (accumulate) to.data = gradient.partials;
  on.gemm.multiply({.m = dz.cols,
                    .n = x.cols,
                    .k = dz.rows,
                    .a = dz.data,
                    .b = x.data,
                    .c = to.data,
                    .lda = dz.stride,
                    .ldb = x.stride,
                    .ldc = to.stride,
                    .transpose_a = true});
  if (accumulate) device::add_rows(on.stream, to, target);
}

}  // namespace shardrec::dense
