// The way back through a stack: Mlp::backward() and what it calls.
#include <algorithm>

#include "compute/non_finite.h"
#include "core/error.h"
#include "dense/layers/mlp.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kInspected = 16384;  // elements that a thread looks through at once

}  // namespace

ElementMatrix Mlp::gradient_of(size_t layer, const ElementMatrix& last) const noexcept {
  if (layer + 1 == layers_.size()) return last;
  return kept_matrix(layers_[layer].gradients, layers_[layer].outputs);
}

ElementMatrix Mlp::product_gradient_of(size_t layer, const ElementMatrix& last) const noexcept {
  const Layer& own = layers_[layer];
  if (own.is(SHARDREC_LAYER_CROSS)) return kept_matrix(own.product_gradients, own.inputs);
  if (!keeps_output(layer)) return last;
  return kept_matrix(own.gradients, own.outputs);
}

GradientBatch Mlp::gradient_batch() const noexcept {
  return {.rows = batch_,
          .is_wide = is_wide_,
          .accumulate = accumulate_,
          .is_whole = device_ != nullptr};
}

Unscaling Mlp::unscaling() noexcept {
  if (!scales()) return {};
  return {.factor = static_cast<float>(1 / loss_scale_.state().scale),
          .found_non_finite = &found_non_finite_};
}

void Mlp::backward(const device::CallerMatrix& output_gradient,
                   const device::CallerMatrix& input_gradient) {
  if (batch_ < 0) {
    core::fail(SHARDREC_INVALID_STATE, "backward was called without a forward before it");
  }
  require_shape(output_gradient.rows, "output_gradient", batch_, outputs());
  const core::Matrix dy = with_blas_stride(output_gradient.rows, "output_gradient");
  core::Matrix dx = input_gradient.rows;
  if (dx.data != nullptr) {
    require_shape(dx, "input_gradient", batch_, inputs_);
    dx = with_blas_stride(dx, "input_gradient");
  }
  if (listener_ != nullptr) listener_->before_backward();
  if (is_sharded_) {
    return backward_in_units({dy, output_gradient.on_device}, {dx, input_gradient.on_device});
  }
  if (batch_ == 0) {
    if (!accumulate_) zero_gradients();
    has_gradients_ = true;
    tell_ready({.begin = 0, .end = layers_.size()});
    return;
  }

  {
    const auto lock = lock_device();
    for (size_t l = 0; l < layers_.size(); ++l) {
      resize_for_backward(layers_[l], gradient_batch(), tile_count(), kept_matrices(l));
    }
  }
  if (device_ != nullptr) {
    backward_on_device({dy, output_gradient.on_device}, {dx, input_gradient.on_device});
    has_gradients_ = true;
    return;
  }
  backward_in_parts(gradient_on_host(dy), dx);
  if (scales()) unscale_on_host(dx);
  has_gradients_ = true;
}

ElementMatrix Mlp::gradient_on_host(const core::Matrix& output_gradient) {
  found_non_finite_ = false;
  if (!rounds()) return output_gradient;
  const auto scale = static_cast<float>(loss_scale_.state().scale);
  return rounded_on_host(output_gradient, rounded_gradient_, scale);
}

void Mlp::backward_in_parts(const ElementMatrix& output_gradient,
                            const core::Matrix& input_gradient) {
  size_t end = layers_.size();
  int64_t elements = 0;
  for (size_t l = layers_.size(); l-- > 0;) {
    elements += layers_[l].elements;
    if (l > 0 && (listener_ == nullptr || elements < kToldElements)) continue;
    backward_layers({.begin = l, .end = end}, accumulate_, output_gradient, input_gradient);
    end = l;
    elements = 0;
  }
}

void Mlp::unscale_on_host(const core::Matrix& input_gradient) {
  const Unscaling wanted = unscaling();
  if (input_gradient.data != nullptr) {
    threads_.parallel_for(input_gradient.rows, tile_rows(), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        wanted.apply(input_gradient.row(r), input_gradient.cols);
      }
    });
  }
  loss_scale_.end_backward(!found_non_finite_);
}

bool Mlp::gradients_are_finite() {
  std::atomic<bool> all_are = true;
  threads_.parallel_for(parameters_.size(), kInspected, [&](int64_t begin, int64_t end) {
    const float* const gradients = parameters_.gradients(begin);
    if (compute::first_non_finite(gradients, SHARDREC_FLOAT32, end - begin) >= 0) all_are = false;
  });
  return all_are;
}

float* Mlp::gradients_of(size_t layer, Role role) const noexcept {
  const auto at = static_cast<size_t>(role);
  if (is_sharded_) return places_[layer].gradients[at];
  const int64_t offset = layers_[layer].offsets[at];
  return device_ == nullptr ? parameters_.gradients(offset) : device_->parameters.gradients(offset);
}

void Mlp::backward_layers(const LayerRange& range, bool accumulate,
                          const ElementMatrix& output_gradient,
                          const core::Matrix& input_gradient) {
  threads_.parallel_for(tile_count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      backward_tile(tile, range, output_gradient, input_gradient);
    }
  });

  GradientBatch batch = gradient_batch();
  batch.accumulate = accumulate;
  batch.unscaling = unscaling();
  weight_gradients_.start(batch);
  for (size_t l = range.begin; l < range.end; ++l) {
    for (size_t w = 0;
         const WeightShape& weight : weights_of(layers_[l].shape, layers_[l].inputs)) {
      weight_gradients_.add(
          weight_gradient(l, w++, output_gradient, gradients_of(l, weight.role), accumulate));
    }
  }
  weight_gradients_.compute(room_->gemm(), threads_);
  for (size_t l = range.begin; l < range.end; ++l) {
    const Layer& layer = layers_[l];
    const VectorRoles vectors = vectors_of(layer.shape);
    for (size_t v = 0; v < vectors.count; ++v) {
      const int64_t size = layer.sums / static_cast<int64_t>(vectors.count);
      add_up({.parts = floats_of(layer.column_sums) + static_cast<int64_t>(v) * size,
              .count = tile_count(),
              .size = size,
              .stride = layer.sums,
              .target = gradients_of(l, vectors.roles[v])},
             batch, threads_);
    }
  }
  tell_ready(range);
}

void Mlp::backward_tile(int64_t tile, const LayerRange& range, const ElementMatrix& output_gradient,
                        const core::Matrix& input_gradient) const noexcept {
  const int64_t begin = tile * tile_rows();
  const int64_t count = std::min(tile_rows(), batch_ - begin);
  for (size_t l = range.end; l-- > range.begin;) {
    const Layer& layer = layers_[l];
    const DropoutMask mask = mask_of(layer);
    const BackwardRowsOf<ElementMatrix> all = backward_rows(l, output_gradient, input_gradient);
    const auto tile_of = [&](const ElementMatrix& matrix) {
      return rows_of(matrix.floats(), begin, count);
    };
    backward_layer(
        room_->gemm(), host_layer(layer),
        {.x = tile_of(all.x),
         .y = tile_of(all.y),
         .dy = tile_of(all.dy),
         .dz = tile_of(all.dz),
         .dx = tile_of(all.dx),
         .column_sums =
             layer.sums == 0 ? nullptr : floats_of(layer.column_sums) + tile * layer.sums,
         .origin = tile_of(all.origin),
         .product = tile_of(all.product),
         .low_gradient = tile_of(all.low_gradient),
         .origin_gradient = tile_of(all.origin_gradient),
         .starts_origin_sum = all.starts_origin_sum,
         .adds_origin_gradient = all.adds_origin_gradient,
         .statistics = all.statistics == nullptr ? nullptr : all.statistics + 2 * begin,
         .mask = drops_ ? &mask : nullptr,
         .first_row = begin,
         .rounding = all.rounding});
  }
}

// All rows of the batch.
BackwardRowsOf<ElementMatrix> Mlp::backward_rows(
    size_t l, const ElementMatrix& output_gradient,
    const core::Matrix& input_gradient) const noexcept {
  const Layer& layer = layers_[l];
  BackwardRowsOf<ElementMatrix> all{
      .x = input_of(l),
      .y = output_of(l, {}),
      .dy = gradient_of(l, output_gradient),
      .dz = product_gradient_of(l, output_gradient),
      .dx = l == 0 ? ElementMatrix(input_gradient) : gradient_of(l - 1, {}),
      .statistics = floats_of(layer.statistics)};
  all.rounding = {.inner = element(), .result = l > 0 ? element() : compute::Element::kFloat32};
  if (!layer.is(SHARDREC_LAYER_CROSS)) return all;
  const bool is_last = l + 1 == layers_.size() || layers_[l + 1].run != layer.run;
  all.origin = input_of(layer.run);
  all.product = kept_matrix(layer.products, layer.inputs);
  all.low_gradient = kept_matrix(layer.low_gradients, layer.shape.rank);
  if (layer.run > 0 || input_gradient.data != nullptr) {
    all.origin_gradient = matrix_of(layers_[layer.run].origin_gradients, batch_, layer.inputs,
                                    compute::Element::kFloat32);
  }
  all.starts_origin_sum = is_last;
  all.adds_origin_gradient = l == layer.run;
  return all;
}

WeightGradient Mlp::weight_gradient(size_t l, size_t w, const ElementMatrix& output_gradient,
                                    float* target, bool accumulate) const noexcept {
  const Layer& layer = layers_[l];
  const int64_t rank = layer.shape.rank;
  const WeightShape weight = weights_of(layer.shape, layer.inputs).shapes[w];
  WeightGradient gradient{
      .dz = product_gradient_of(l, output_gradient), .x = input_of(l), .target = target};
  if (weight.role == Role::kDown) gradient.dz = kept_matrix(layer.low_gradients, rank);
  if (weight.role == Role::kWeight && rank != 0) gradient.x = kept_matrix(layer.low, rank);
  GradientBatch batch = gradient_batch();
  batch.accumulate = accumulate;
  if (partial_floats(weight, batch) != 0) {
    gradient.partials = floats_of(layer.partials[w]);
  }
  return gradient;
}

void Mlp::tell_ready(const LayerRange& range, compute::cuda::host::Stream* stream) {
  if (listener_ == nullptr) return;
  int64_t count = 0;
  for (size_t l = range.begin; l < range.end; ++l) count += layers_[l].count;
  if (count > 0) listener_->ready(layers_[range.begin].first, count, stream);
}

}  // namespace shardrec::dense
