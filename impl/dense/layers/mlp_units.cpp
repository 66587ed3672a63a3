// A stack whose parameters others keep, in units: what each of its layers needs is there while it is computed.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "dense/layers/mlp.h"

namespace shardrec::dense {
namespace {

constexpr int64_t kPlacedGrain = 16384;  // elements
constexpr int64_t kWeightGrain = 16;     // floats of a cache line

int64_t padded_floats(const WeightShape& weight) noexcept {
  return (weight.outputs * weight.inputs + kWeightGrain - 1) / kWeightGrain * kWeightGrain;
}

}  // namespace

void Mlp::require_own_parameters(const char* call) const {
  if (!is_sharded_) return;
  core::fail(SHARDREC_INVALID_STATE,
             core::sentence(call,
                            ": the parameters of the stack are those of a set of sharded "
                            "parameters; use the functions of shardrec_fsdp"));
}

void Mlp::set_units(std::shared_ptr<LayerUnits> units) {
  if (parameters_.infos().empty()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack has no parameter; add all layers first");
  }
  if (is_sharded_ || (units_ != nullptr && !units_->expired())) {
    core::fail(SHARDREC_INVALID_STATE, "the stack is in a set of sharded parameters already");
  }
  if (listener_ != nullptr && !listener_->expired()) {
    core::fail(SHARDREC_INVALID_STATE, "the stack is in a set of DDP parameters already");
  }
  const int32_t own_device = device_ == nullptr ? -1 : device_->context.device();
  if (own_device != units->device()) {
    const auto name_of = [](int32_t device) {
      return device < 0 ? std::string("the CPU") : core::sentence("device ", device);
    };
    core::fail(SHARDREC_UNSUPPORTED,
               core::sentence("the stack is on ", name_of(own_device),
                              ", and the set has full parameters on ", name_of(units->device()),
                              "; the option DEVICE of both is the same"));
  }
  if (rounds() && device_ != nullptr) {
    core::fail(
        SHARDREC_UNSUPPORTED,
        "the stack computes in 16 bits on a device; one in FLOAT32 or TFLOAT32, or on the CPU, has "
        "parameters that are sharded");
  }
  if (accumulate_) {
    core::fail(SHARDREC_UNSUPPORTED,
               "the stack has the option ACCUMULATE_GRADIENTS; gradients of sharded parameters are "
               "added up by steps without sync");
  }
  places_.resize(layers_.size());
  rounded_elements_ = 0;
  for (const LayerRange& range : units->ranges()) {
    int64_t elements = 0;
    for (size_t l = range.begin; l < range.end; ++l) {
      for (const WeightShape& weight : weights_of(layers_[l].shape, layers_[l].inputs)) {
        elements += padded_floats(weight);
      }
    }
    rounded_elements_ = std::max(rounded_elements_, elements);
  }
  units_ = std::move(units);
}

void Mlp::release_parameters() noexcept {
  parameters_.clear();
  if (device_ != nullptr) {
    const std::lock_guard lock(device_->mutex);
    device_->parameters.release();
    device_->has_parameters = false;
  }
  is_sharded_ = true;
  batch_ = -1;  // of a forward with the parameters that are gone
}

void Mlp::forward_in_units(const core::Matrix& output) {
  try {
    for (size_t unit = 0; const LayerRange& range : units_->ranges()) {
      units_->unshard(unit, nullptr);
      place_values(range);
      forward_layers(range, output);
      units_->reshard(unit++);
    }
  } catch (...) {
    batch_ = -1;
    throw;
  }
}

// Of the unit alone: another one's take their place.
void Mlp::round_placed_weights(const LayerRange& range) {
  const auto round = rounding_to(element(), kernels());
  float* to = floats_of(rounded_values_);
  for (size_t l = range.begin; l < range.end; ++l) {
    for (const WeightShape& weight : weights_of(layers_[l].shape, layers_[l].inputs)) {
      const float*& values = places_[l].values[static_cast<size_t>(weight.role)];
      const float* const from = values;
      threads_.parallel_for(
          weight.outputs * weight.inputs, kPlacedGrain,
          [&](int64_t begin, int64_t end) { round(from + begin, to + begin, end - begin); });
      values = to;
      to += padded_floats(weight);
    }
  }
}

void Mlp::place_values(const LayerRange& range) {
  for (size_t l = range.begin; l < range.end; ++l) {
    for (size_t role = 0; role < kRoles; ++role) {
      const int64_t parameter = layers_[l].indices[role];
      if (parameter >= 0) places_[l].values[role] = units_->values(parameter);
    }
  }
  if (rounds()) round_placed_weights(range);
}

void Mlp::place_gradients(const LayerRange& range, LayerUnits::Stream* user) {
  for (size_t l = range.begin; l < range.end; ++l) {
    for (size_t role = 0; role < kRoles; ++role) {
      const int64_t parameter = layers_[l].indices[role];
      if (parameter >= 0) places_[l].gradients[role] = units_->gradients(parameter, user);
    }
  }
}

void Mlp::backward_in_units(const device::CallerMatrix& output_gradient,
                            const device::CallerMatrix& input_gradient) {
  const LayerUnitsUse use(*units_);
  units_->require_backward();
  const std::span<const LayerRange> ranges = units_->ranges();
  const auto lock = lock_device();
  for (size_t unit = 0; unit < ranges.size(); ++unit) {
    GradientBatch batch = gradient_batch();
    batch.accumulate = units_->has_gradients(unit);
    for (size_t l = ranges[unit].begin; l < ranges[unit].end; ++l) {
      resize_for_backward(layers_[l], batch, tile_count(), kept_matrices(l));
    }
  }
  if (device_ == nullptr) {
    const ElementMatrix gradient = gradient_on_host(output_gradient.rows);
    backward_units(nullptr, [&](const LayerRange& range, bool accumulate) {
      backward_layers(range, accumulate, gradient, input_gradient.rows);
    });
    if (scales() && batch_ > 0) unscale_on_host(input_gradient.rows);
    return;
  }
  device::CallerMatrices given(device_->context);
  const core::Matrix dy = device_->copied(given, output_gradient, device_->output_gradient);
  const core::Matrix dx = given.write(input_gradient, device_->input_gradient);
  const DeviceStack::Span span(device_->trace, "dense backward");
  backward_units(&device_->context.stream(), [&](const LayerRange& range, bool accumulate) {
    for (size_t l = range.end; l-- > range.begin;) {
      backward_layer_on_device(l, dy, dx, accumulate);
    }
  });
  given.done();
}

void Mlp::backward_units(LayerUnits::Stream* user,
                         core::FunctionRef<void(const LayerRange&, bool accumulate)> layers) {
  const std::span<const LayerRange> ranges = units_->ranges();
  for (size_t unit = ranges.size(); unit-- > 0;) {
    const bool adds = units_->has_gradients(unit);
    units_->unshard(unit, user);
    if (batch_ > 0) {
      place_values(ranges[unit]);
      place_gradients(ranges[unit], user);
      layers(ranges[unit], adds);
    }
    units_->mark_ready(unit, user);
  }
}

void Mlp::forward_in_units_on_device(const ElementMatrix& output) {
  for (size_t unit = 0; const LayerRange& range : units_->ranges()) {
    units_->unshard(unit, &device_->context.stream());
    place_values(range);
    forward_layers_on_device(range, output);
    units_->reshard(unit++);
  }
}

}  // namespace shardrec::dense
