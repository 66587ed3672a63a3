#include "dense/layers/layer.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace shardrec::dense {
namespace {

void resize_floats(compute::Buffer& buffer, int64_t rows, int64_t cols) {
  buffer.resize_as<float>(static_cast<size_t>(rows * cols));
}

ParameterInfo info_of(const LayerParameter& parameter, size_t layer) {
  ParameterInfo info;
  info.name = parameter_name(layer, parameter.role);
  info.shape = parameter.shape;
  info.size =
      std::accumulate(info.shape.begin(), info.shape.end(), int64_t{1}, std::multiplies<>());
  return info;
}

}  // namespace

Layer append_layer(const NewLayer& added, Parameters& parameters, core::Threads& threads) {
  Layer layer(added.memory);
  layer.shape = added.shape;
  layer.inputs = added.inputs;
  layer.outputs = outputs_of(added.shape, added.inputs);
  layer.number = added.number;
  const bool goes_on = added.previous != nullptr && added.previous->is(added.shape.kind);
  layer.run = goes_on ? added.previous->run : added.number;
  if (added.previous != nullptr) {
    const Layer& before = *added.previous;
    layer.first_weight = before.first_weight + weights_of(before.shape, before.inputs).count;
  }
  layer.first = static_cast<int64_t>(parameters.infos().size());
  layer.offset = parameters.size();

  const std::vector<LayerParameter> own = parameters_of(added.shape, added.inputs);
  layer.count = static_cast<int64_t>(own.size());
  std::vector<ParameterInfo> infos;
  for (const LayerParameter& parameter : own) {
    infos.push_back(info_of(parameter, added.number));
    const int64_t offset = layer.offset + layer.elements;
    layer.offsets[static_cast<size_t>(parameter.role)] = offset;
    layer.indices[static_cast<size_t>(parameter.role)] =
        layer.first + static_cast<int64_t>(infos.size()) - 1;
    layer.elements += infos.back().size;
    if (parameter.shape.size() == 1) layer.sums += infos.back().size;
  }
  if (own.empty()) return layer;
  parameters.append(std::move(infos));

  for (const LayerParameter& parameter : own) {
    const int64_t offset = layer.offsets[static_cast<size_t>(parameter.role)];
    const int64_t size =
        parameters.infos()[static_cast<size_t>(layer.first + (&parameter - own.data()))].size;
    const std::span values(parameters.values(offset), static_cast<size_t>(size));
    if (parameter.deviation == 0) {
      std::ranges::fill(values, parameter.constant);
    } else {
      fill_normal(values, parameter.deviation, added.seed, static_cast<uint32_t>(added.number),
                  static_cast<uint32_t>(parameter.role), threads);
    }
  }
  return layer;
}

void resize_for_forward(Layer& layer, int64_t batch, const KeptMatrices& kept) {
  if (kept.output) resize_matrix(layer.activations, batch, layer.outputs, kept.activations);
  if (layer.is(SHARDREC_LAYER_CROSS)) {
    resize_matrix(layer.products, batch, layer.inputs, kept.elements);
    if (layer.shape.rank != 0) resize_matrix(layer.low, batch, layer.shape.rank, kept.elements);
  }
  if (layer.is(SHARDREC_LAYER_LAYER_NORM)) resize_floats(layer.statistics, batch, 2);
}

void resize_for_backward(Layer& layer, const GradientBatch& batch, int64_t tiles,
                         const KeptMatrices& kept) {
  if (kept.output) resize_matrix(layer.gradients, batch.rows, layer.outputs, kept.elements);
  resize_floats(layer.column_sums, tiles, layer.sums);
  if (layer.is(SHARDREC_LAYER_CROSS)) {
    resize_matrix(layer.product_gradients, batch.rows, layer.inputs, kept.elements);
    if (layer.run == layer.number) resize_floats(layer.origin_gradients, batch.rows, layer.inputs);
    if (layer.shape.rank != 0) {
      resize_matrix(layer.low_gradients, batch.rows, layer.shape.rank, kept.elements);
    }
  }
  const WeightShapes weights = weights_of(layer.shape, layer.inputs);
  for (size_t w = 0; w < weights.count; ++w) {
    const int64_t floats = partial_floats(weights.shapes[w], batch);
    if (floats != 0) resize_floats(layer.partials[w], 1, floats);
  }
}

LayerValues values_of(const Layer& layer, const float* all, const float* weights) noexcept {
  LayerValues values{.shape = layer.shape, .inputs = layer.inputs, .outputs = layer.outputs};
  for (size_t role = 0; role < kRoles; ++role) {
    values.parameters[role] = all + layer.offsets[role];
  }
  if (weights == nullptr) return values;
  for (const WeightShape& weight : weights_of(layer.shape, layer.inputs)) {
    const auto role = static_cast<size_t>(weight.role);
    values.parameters[role] = weights + layer.offsets[role];
  }
  return values;
}

void resize_matrix(compute::Buffer& buffer, int64_t rows, int64_t cols, compute::Element element) {
  buffer.resize(static_cast<size_t>(rows * row_stride(cols, element)) *
                compute::element_bytes(element));
}

ElementMatrix matrix_of(const compute::Buffer& buffer, int64_t rows, int64_t cols,
                        compute::Element element) noexcept {
  ElementMatrix matrix;
  matrix.data = const_cast<void*>(static_cast<const void*>(buffer.data()));
  matrix.rows = rows;
  matrix.cols = cols;
  matrix.stride = row_stride(cols, element);
  matrix.element = element;
  return matrix;
}

float* floats_of(const compute::Buffer& buffer) noexcept {
  return static_cast<float*>(const_cast<void*>(static_cast<const void*>(buffer.data())));
}

}  // namespace shardrec::dense
