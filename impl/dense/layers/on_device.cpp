#include "dense/layers/on_device.h"

#include <array>

namespace shardrec::dense {
namespace {

device::DType dtype_of(const ElementMatrix& matrix) {
  switch (matrix.element) {
    case compute::Element::kFloat16:
      return device::DType::kFloat16;
    case compute::Element::kBfloat16:
      return device::DType::kBfloat16;
    default:
      return device::DType::kFloat32;
  }
}

// c = a b, of their shapes where they are not transposed.
device::Product product_of(const DeviceOperations& on, const ElementMatrix& a,
                           const ElementMatrix& b, const ElementMatrix& c) {
  return {.m = c.rows,
          .n = c.cols,
          .k = a.cols,
          .a = a.data,
          .b = b.data,
          .c = c.data,
          .lda = a.stride,
          .ldb = b.stride,
          .ldc = c.stride,
          .inputs = dtype_of(a),
          .output = dtype_of(c),
          .multiplier = on.multiplier};
}

// y = x W^T, W [y.cols, x.cols].
device::Product forward_product(const DeviceOperations& on, const ElementMatrix& x,
                                const ElementMatrix& weight, const ElementMatrix& y) {
  device::Product product = product_of(on, x, weight, y);
  product.transpose_b = true;
  return product;
}

// dx = dz W, W [dz.cols, dx.cols].
void multiply_back(const DeviceOperations& on, const ElementMatrix& dz, const ElementMatrix& weight,
                   const ElementMatrix& dx) {
  on.gemm.multiply(product_of(on, dz, weight, dx));
}

void linear(const DeviceOperations& on, const DeviceLayer& layer, const DeviceForwardRows& rows) {
  const float* const bias = layer.values.of(Role::kBias);
  const bool relu = layer.values.shape.activation == SHARDREC_ACTIVATION_RELU;
  device::Product product = forward_product(on, rows.x, layer.weight(Role::kWeight), rows.y);
  if (!relu && rows.y.is_of_floats()) {
    product.epilogue = device::Epilogue::kBias;
    product.bias = const_cast<float*>(bias);
    if (on.gemm.try_multiply(product)) return;
    product.epilogue = device::Epilogue::kNone;
    product.bias = nullptr;
  }
  // A ReLU in the product's kernel would make 0 of NaN; and to a sum of 16 bits it adds a bias of 16 bits.
  on.gemm.multiply(product);
  device::bias_activation(on.stream, rows.y, bias, relu);
}

void cross(const DeviceOperations& on, const DeviceLayer& layer, const DeviceForwardRows& rows) {
  const bool is_low = layer.values.shape.rank != 0;
  if (is_low) {
    on.gemm.multiply(forward_product(on, rows.x, layer.weight(Role::kDown), rows.low));
  }
  on.gemm.multiply(
      forward_product(on, is_low ? rows.low : rows.x, layer.weight(Role::kWeight), rows.product));
  device::cross_forward(on.stream, layer.values.of(Role::kBias), rows.origin, rows.x, rows.product,
                        rows.y);
}

void layer_norm(const DeviceOperations& on, const DeviceLayer& layer,
                const DeviceForwardRows& rows) {
  device::layer_norm_forward(on.stream,
                             {.weight = layer.values.of(Role::kWeight),
                              .bias = layer.values.of(Role::kBias),
                              .epsilon = static_cast<float>(layer.values.shape.epsilon)},
                             rows.x, rows.y, rows.statistics);
}

void drop(const DeviceOperations& on, const DropoutMask* mask, const ElementMatrix& x,
          const ElementMatrix& y) {
  if (mask != nullptr) {
    device::dropout(on.stream, *mask, on.forward, x, y);
  } else {
    device::copy_rows(on.stream, x, y);
  }
}

void dropout(const DeviceOperations& on, const DeviceLayer& /*layer*/,
             const DeviceForwardRows& rows) {
  drop(on, rows.mask, rows.x, rows.y);
}

void linear_back(const DeviceOperations& on, const DeviceLayer& layer,
                 const DeviceBackwardRows& rows, const device::TileSums& sums) {
  if (layer.values.shape.activation == SHARDREC_ACTIVATION_RELU) {
    device::relu_backward(on.stream, rows.y, rows.dy, rows.dz);
  }
  device::column_sums(on.stream, rows.dz, sums);
  if (rows.dx.data != nullptr) multiply_back(on, rows.dz, layer.weight(Role::kWeight), rows.dx);
}

// In the order of cross_back() in backward.cpp.
void cross_back(const DeviceOperations& on, const DeviceLayer& layer,
                const DeviceBackwardRows& rows, const device::TileSums& sums) {
  const ElementMatrix& dz = rows.dz;
  device::cross_backward(on.stream,
                         {.origin = rows.origin, .product = rows.product, .dy = rows.dy, .dz = dz},
                         rows.origin_gradient, rows.starts_origin_sum);
  device::column_sums(on.stream, dz, sums);
  const bool is_low = layer.values.shape.rank != 0;
  if (is_low) multiply_back(on, dz, layer.weight(Role::kWeight), rows.low_gradient);
  if (rows.dx.data == nullptr) return;
  multiply_back(on, is_low ? rows.low_gradient : dz,
                layer.weight(is_low ? Role::kDown : Role::kWeight), rows.dx);
  device::add_rows(on.stream, rows.dy, rows.dx);
  if (rows.adds_origin_gradient) device::add_rows(on.stream, rows.origin_gradient, rows.dx);
}

void layer_norm_back(const DeviceOperations& on, const DeviceLayer& layer,
                     const DeviceBackwardRows& rows, const device::TileSums& sums) {
  device::layer_norm_backward(on.stream, layer.values.of(Role::kWeight), rows.statistics, rows.x,
                              rows.dy, rows.dx, sums);
}

void dropout_back(const DeviceOperations& on, const DeviceLayer& /*layer*/,
                  const DeviceBackwardRows& rows, const device::TileSums& /*sums*/) {
  if (rows.dx.data != nullptr) drop(on, rows.mask, rows.dy, rows.dx);
}

// By kind.
using DeviceForward = void (*)(const DeviceOperations&, const DeviceLayer&,
                               const DeviceForwardRows&);
constexpr std::array<DeviceForward, 4> kDeviceForward = {&linear, &cross, &layer_norm, &dropout};
using DeviceBackward = void (*)(const DeviceOperations&, const DeviceLayer&,
                                const DeviceBackwardRows&, const device::TileSums&);
constexpr std::array<DeviceBackward, 4> kDeviceBackward = {&linear_back, &cross_back,
                                                           &layer_norm_back, &dropout_back};

}  // namespace

void forward_layer(const DeviceOperations& on, const DeviceLayer& layer,
                   const DeviceForwardRows& rows) {
  kDeviceForward[static_cast<size_t>(layer.values.shape.kind)](on, layer, rows);
}

void backward_layer(const DeviceOperations& on, const DeviceLayer& layer,
                    const DeviceBackwardRows& rows, const device::TileSums& sums) {
  kDeviceBackward[static_cast<size_t>(layer.values.shape.kind)](on, layer, rows, sums);
}

void add_weight_gradient(const DeviceOperations& on, const WeightGradient& gradient,
                         bool accumulate) {
  const ElementMatrix &dz = gradient.dz, &x = gradient.x;
  const core::Matrix target{gradient.target, dz.cols, x.cols, x.cols};
  core::Matrix to = target;
  if (accumulate) to.data = gradient.partials;
  device::Product product = product_of(on, dz, x, to);
  product.k = dz.rows;
  product.transpose_a = true;
  on.gemm.multiply(product);
  if (on.loss_scale != nullptr) {
    device::unscale_rows(on.stream, to, target, accumulate, on.loss_scale);
  } else if (accumulate) {
    device::add_rows(on.stream, to, target);
  }
}

}  // namespace shardrec::dense
