#include "dense/layers/mlp.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace shardrec::dense {

Mlp::Mlp(int64_t inputs, const MlpOptions& options)
    : inputs_(inputs),
      seed_(options.seed),
      accumulate_(options.accumulate),
      threads_(options.threads),
      parameters_(options.optimizer) {
  if (inputs < 1 || inputs > kLargestWidth) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("a stack of layers cannot have ", inputs, " inputs; 1 .. ",
                              kLargestWidth, " is accepted"),
               {.value = inputs, .limit = kLargestWidth + 1});
  }
  if (options.place.device < 0) {
    room_.emplace(threads_.count());
  } else {
    device_ = std::make_unique<DeviceStack>(options.place, parameters_);
  }
}

int64_t Mlp::outputs() const noexcept { return layers_.empty() ? inputs_ : layers_.back().outputs; }

std::vector<LayerShape> Mlp::shapes() const {
  std::vector<LayerShape> shapes;
  for (const Layer& layer : layers_) shapes.push_back(layer.shape);
  return shapes;
}

bool Mlp::has_dropout() const noexcept {
  return std::ranges::any_of(layers_,
                             [](const Layer& layer) { return layer.is(SHARDREC_LAYER_DROPOUT); });
}

void Mlp::add(const LayerShape& shape) {
  if (frozen_) {
    core::fail(SHARDREC_INVALID_STATE,
               "a layer was added after the first forward; add all layers before it");
  }
  if (listener_ != nullptr) {
    core::fail(SHARDREC_INVALID_STATE,
               "a layer was added after shardrec_ddp_add_mlp; add all layers before it");
  }
  check_shape(shape);
  const int64_t inputs = outputs();
  fetch();
  layers_.reserve(layers_.size() + 1);
  weight_gradients_.reserve(weights_of(shape, inputs).count);
  layers_.push_back(append_layer(
      {.shape = shape,
       .inputs = inputs,
       .number = layers_.size(),
       .previous = layers_.empty() ? nullptr : &layers_.back(),
       .seed = seed_,
       .memory = device_ == nullptr ? compute::cpu_memory() : device_->context.memory()},
      parameters_, threads_));
  if (device_ == nullptr) return;
  const std::lock_guard lock(device_->mutex);
  device_->host_is_newer = true;
  is_wide_ = is_wide_ || is_wide(shape, inputs);
}

// The last layer writes into the caller's memory, which need not live until backward; only a ReLU
// has to know its output again.
bool Mlp::keeps_output(size_t layer) const noexcept {
  return layer + 1 < layers_.size() || layers_[layer].has_activation();
}

core::Matrix Mlp::input_of(size_t layer) const noexcept {
  return layer == 0 ? input_ : output_of(layer - 1, {});
}

core::Matrix Mlp::output_of(size_t layer, const core::Matrix& last) const noexcept {
  if (!keeps_output(layer)) return last;
  return matrix_of(layers_[layer].activations, batch_, layers_[layer].outputs);
}

int64_t Mlp::tile_rows() const noexcept { return dense::tile_rows(batch_, is_wide_); }

int64_t Mlp::tile_count() const noexcept { return (batch_ + tile_rows() - 1) / tile_rows(); }

DropoutMask Mlp::mask_of(const Layer& layer) const noexcept {
  const double rate = layer.shape.rate;
  return {.seed = seed_,
          .layer = static_cast<uint32_t>(layer.number),
          .forward = forward_number_,
          .threshold = static_cast<uint32_t>(rate * 0x1p32),
          .factor = static_cast<float>(1 / (1 - rate))};
}

void Mlp::forward(const device::CallerMatrix& input, const device::CallerMatrix& output) {
  if (layers_.empty()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack has no layer; add one before forward");
  }
  require_shape(input.rows, "input", input.rows.rows, inputs_);
  require_shape(output.rows, "output", input.rows.rows, outputs());
  const core::Matrix in = with_blas_stride(input.rows, "input");
  const core::Matrix out = with_blas_stride(output.rows, "output");

  batch_ = -1;
  {
    const auto lock = lock_device();
    for (size_t l = 0; l < layers_.size(); ++l) {
      resize_for_forward(layers_[l], in.rows, keeps_output(l));
    }
  }
  frozen_ = true;
  drops_ = training_ && has_dropout();
  forward_number_ = static_cast<uint32_t>(dropout_forwards_);
  if (device_ != nullptr) {
    forward_on_device({in, input.on_device}, {out, output.on_device});
    if (drops_) ++dropout_forwards_;
    return;
  }
  if (drops_) ++dropout_forwards_;
  input_ = in;
  batch_ = in.rows;
  const int64_t rows = tile_rows();
  threads_.parallel_for(tile_count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      forward_tile(tile * rows, std::min((tile + 1) * rows, batch_), out);
    }
  });
}

// All rows of the batch, but for the mask.
ForwardRows Mlp::forward_rows(size_t l, const core::Matrix& output) const noexcept {
  const Layer& layer = layers_[l];
  ForwardRows all{.x = input_of(l), .y = output_of(l, output)};
  if (layer.is(SHARDREC_LAYER_CROSS)) {
    all.origin = input_of(layer.run);
    all.product = matrix_of(layer.products, batch_, layer.inputs);
    all.low = matrix_of(layer.low, batch_, layer.shape.rank);
  }
  if (layer.is(SHARDREC_LAYER_LAYER_NORM)) {
    all.statistics = matrix_of(layer.statistics, batch_, 2).data;
  }
  return all;
}

void Mlp::forward_tile(int64_t begin, int64_t end, const core::Matrix& output) const noexcept {
  for (size_t l = 0; l < layers_.size(); ++l) {
    const DropoutMask mask = mask_of(layers_[l]);
    ForwardRows at = forward_rows(l, output);
    for (core::Matrix* matrix : {&at.x, &at.y, &at.origin, &at.product, &at.low}) {
      *matrix = rows_of(*matrix, begin, end - begin);
    }
    if (at.statistics != nullptr) at.statistics += 2 * begin;
    if (drops_) at.mask = &mask;
    at.first_row = begin;
    forward_layer(room_->gemm(), values_of(layers_[l], parameters_.values()), at);
  }
  const size_t last = layers_.size() - 1;
  if (!keeps_output(last)) return;
  const core::Matrix y = output_of(last, output);
  for (int64_t r = begin; r < end; ++r) std::copy_n(y.row(r), y.cols, output.row(r));
}

void Mlp::set_listener(std::shared_ptr<GradientListener> listener) {
  if (layers_.empty()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack has no layer; add all layers first");
  }
  if (listener_ != nullptr && !listener_->expired()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack is in a set of DDP parameters already");
  }
  listener_ = std::move(listener);
}

void Mlp::zero_gradients() {
  std::fill_n(parameters_.gradients(), parameters_.size(), 0.0F);
  if (device_ == nullptr) return;
  const std::lock_guard lock(device_->mutex);
  device_->zero_gradients();
}

void Mlp::step() {
  if (!has_gradients_) {
    core::fail(SHARDREC_INVALID_STATE, "step was called without a backward before it");
  }
  if (device_ != nullptr) {
    step_on_device();
  } else {
    parameters_.step(threads_);
  }
}

}  // namespace shardrec::dense
