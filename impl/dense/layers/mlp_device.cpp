// A stack on a device: what Mlp's calls do there.
#include "dense/layers/mlp.h"

namespace shardrec::dense {

void Mlp::fetch() {
  if (device_ == nullptr) return;
  const std::lock_guard lock(device_->mutex);
  device_->send_back();
}

void Mlp::fetch_loss_scale() {
  if (device_ == nullptr) return;
  const std::lock_guard lock(device_->mutex);
  device_->send_back_scale();
}

void Mlp::publish() noexcept {
  if (device_ == nullptr) return;
  const std::lock_guard lock(device_->mutex);
  device_->host_is_newer = true;
  try {
    device_->receive();
  } catch (...) {  // the host stays newer
    return;
  }
}

core::DeviceSet Mlp::caller_devices() const noexcept {
  return device_ == nullptr ? core::kHostOnly : core::DeviceSet{.cuda = device_->context.device()};
}

float* Mlp::values(int64_t offset) {
  if (device_ == nullptr) return parameters_.values(offset);
  const std::lock_guard lock(device_->mutex);
  device_->settle();
  has_parameter_views_ = true;
  device_->weights_are_rounded = false;
  return device_->parameters.values(offset);
}

float* Mlp::gradients(int64_t offset) {
  if (device_ == nullptr) return parameters_.gradients(offset);
  const std::lock_guard lock(device_->mutex);
  device_->settle();
  return device_->parameters.gradients(offset);
}

float* Mlp::state(int state, int64_t offset) {
  if (device_ == nullptr) return parameters_.state(state, offset);
  const std::lock_guard lock(device_->mutex);
  device_->settle();
  return device_->parameters.state(state, offset);
}

void Mlp::set_track(const core::TraceTrack& track) {
  if (device_ == nullptr) return;
  const std::lock_guard lock(device_->mutex);
  device_->trace.set_track(track);
}

std::unique_lock<std::mutex> Mlp::lock_device() const {
  return device_ == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(device_->mutex);
}

void Mlp::with_context(core::FunctionRef<void(device::Context&)> use) {
  const std::lock_guard lock(device_->mutex);
  use(device_->context);
}

DeviceLayer Mlp::device_layer(const Layer& layer) const noexcept {
  DeviceLayer on_device{.values = is_sharded_ ? placed_values(layer)
                                              : values_of(layer, device_->parameters.values())};
  size_t index = layer.first_weight;
  for (const WeightShape& weight : weights_of(layer.shape, layer.inputs)) {
    auto* const values = const_cast<float*>(on_device.values.of(weight.role));
    on_device.weights[static_cast<size_t>(weight.role)] =
        rounds() ? device_->rounded_weights.copy(index)
                 : core::Matrix{values, weight.outputs, weight.inputs, weight.inputs};
    ++index;
  }
  return on_device;
}

device::Multiplier Mlp::multiplier() const noexcept {
  return precision_ == Precision::kTfloat32 ? device::Multiplier::kTf32
                                            : device::Multiplier::kExact;
}

ElementMatrix Mlp::rounded_on_device(const core::Matrix& from, const compute::Buffer& buffer,
                                     const shardrec_cuda_loss_scale* scale) {
  const ElementMatrix rounded = kept_matrix(buffer, from.cols);
  device::copy_rows(device_->context.stream(), from, rounded, scale);
  return rounded;
}

// Parameters that others may change at any time by views, callers or a set of DDP parameters, are rounded for each
// forward.
void Mlp::round_weights_on_device() {
  if (device_->weights_are_rounded) return;
  device_->rounded_weights.round(device_->parameters.values());
  device_->weights_are_rounded = !has_parameter_views_;
}

void Mlp::forward_on_device(const device::CallerMatrix& input, const device::CallerMatrix& output) {
  const std::lock_guard lock(device_->mutex);
  device_->receive();
  device::CallerMatrices given(device_->context);
  const core::Matrix in = device_->copied(given, input, device_->input);
  const core::Matrix out = given.write(output, device_->output);
  batch_ = input.rows.rows;
  const DeviceStack::Span span(device_->trace, "dense forward");
  try {
    if (drops_) device_->store_forward(forward_number_);
    input_ = rounds() ? rounded_on_device(in, rounded_input_) : in;
    if (rounds()) round_weights_on_device();
    if (is_sharded_) {
      forward_in_units_on_device(out);
    } else {
      forward_layers_on_device({.begin = 0, .end = layers_.size()}, out);
    }
    const size_t last = layers_.size() - 1;
    if (keeps_output(last)) {
      device::copy_rows(device_->context.stream(), output_of(last, out), out);
    }
    given.done();
  } catch (...) {
    batch_ = -1;
    throw;
  }
}

void Mlp::forward_layers_on_device(const LayerRange& range, const ElementMatrix& output) {
  const DeviceOperations on = device_->operations(multiplier());
  for (size_t l = range.begin; l < range.end; ++l) {
    const DropoutMask mask = mask_of(layers_[l]);
    DeviceForwardRows rows = forward_rows(l, output);
    if (drops_) rows.mask = &mask;
    forward_layer(on, device_layer(layers_[l]), rows);
  }
}

void Mlp::backward_on_device(const device::CallerMatrix& output_gradient,
                             const device::CallerMatrix& input_gradient) {
  const std::lock_guard lock(device_->mutex);
  device_->receive();
  device::CallerMatrices given(device_->context);
  const core::Matrix given_dy = device_->copied(given, output_gradient, device_->output_gradient);
  const core::Matrix dx = given.write(input_gradient, device_->input_gradient);
  const DeviceStack::Span span(device_->trace, "dense backward");
  const DeviceOperations on = device_->operations(multiplier());
  if (device_->scaling) device_->scaling->begin_backward();
  const ElementMatrix dy =
      rounds() ? rounded_on_device(given_dy, rounded_gradient_, on.loss_scale) : given_dy;
  backward_layers_on_device(dy, dx);
  if (device_->scaling) {
    if (dx.data != nullptr) device::unscale_rows(on.stream, dx, dx, false, on.loss_scale);
    device_->scaling->end_backward();
  }
  given.done();
}

void Mlp::backward_layers_on_device(const ElementMatrix& output_gradient,
                                    const core::Matrix& input_gradient) {
  size_t end = layers_.size();  // layers from here on are told of
  int64_t elements = 0;
  for (size_t l = layers_.size(); l-- > 0;) {
    backward_layer_on_device(l, output_gradient, input_gradient, accumulate_);
    elements += layers_[l].elements;
    if (l > 0 && elements < kToldElements) continue;
    tell_ready({.begin = l, .end = end}, &device_->context.stream());
    end = l;
    elements = 0;
  }
}

// Sums of the vectors of a layer lie one behind the other. In units each vector has a place of its own, which they are
// added to from there.
void Mlp::backward_layer_on_device(size_t l, const ElementMatrix& output_gradient,
                                   const core::Matrix& input_gradient, bool accumulate) {
  const DeviceOperations on = device_->operations(multiplier());
  const Layer& layer = layers_[l];
  const DropoutMask mask = mask_of(layer);
  DeviceBackwardRows rows = backward_rows(l, output_gradient, input_gradient);
  if (drops_) rows.mask = &mask;
  const VectorRoles vectors = vectors_of(layer.shape);
  const bool are_apart = is_sharded_ && vectors.count > 1;
  float* sums = nullptr;
  if (are_apart) {
    sums = device_->vector_sums.resize_as<float>(static_cast<size_t>(layer.sums)).data();
  } else if (vectors.count > 0) {
    sums = gradients_of(l, vectors.roles[0]);
  }
  backward_layer(on, device_layer(layer), rows,
                 {.tile_rows = tile_rows(),
                  .parts = floats_of(layer.column_sums),
                  .target = sums,
                  .accumulate = accumulate && !are_apart,
                  .loss_scale = on.loss_scale});
  for (size_t v = 0; are_apart && v < vectors.count; ++v) {
    const int64_t size = layer.sums / static_cast<int64_t>(vectors.count);
    const auto vector = [size](float* data) { return core::Matrix{data, 1, size, size}; };
    const core::Matrix from = vector(sums + static_cast<int64_t>(v) * size);
    const core::Matrix to = vector(gradients_of(l, vectors.roles[v]));
    accumulate ? device::add_rows(on.stream, from, to) : device::copy_rows(on.stream, from, to);
  }
  for (size_t w = 0; const WeightShape& weight : weights_of(layer.shape, layer.inputs)) {
    float* const target = gradients_of(l, weight.role);
    add_weight_gradient(on, weight_gradient(l, w++, output_gradient, target, accumulate),
                        accumulate);
  }
}

void Mlp::compute_loss(const device::LossVectors& vectors, double* mean) {
  const std::lock_guard lock(device_->mutex);
  device_->loss.compute(vectors, mean);
}

void Mlp::step_on_device() {
  const std::lock_guard lock(device_->mutex);
  device_->receive();
  device_->context.follow_caller();
  const int64_t steps = parameters_.steps();
  const compute::ElementUpdate settings = parameters_.begin_step();
  const DeviceStack::Span span(device_->trace, "dense step");
  if (device_->scaling) {  // the device counts
    parameters_.set_steps(steps);
    device_->parameters.reserve_step(settings);
    device_->scaling->begin_step(device_->parameters.gradients());
    device_->parameters.step(settings, device_->loss_scale());
  } else {
    try {
      device_->parameters.step(settings);
    } catch (...) {
      parameters_.set_steps(steps);
      throw;
    }
  }
  device_->weights_are_rounded = false;
  device_->context.hold_up_caller();
}

}  // namespace shardrec::dense
