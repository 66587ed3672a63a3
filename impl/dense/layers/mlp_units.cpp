// A stack whose parameters others keep, in units: what each of its layers needs is there while it is computed.
#include <utility>

#include "core/error.h"
#include "dense/layers/mlp.h"

namespace shardrec::dense {

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
  if (device_ != nullptr) {
    core::fail(SHARDREC_UNSUPPORTED,
               "the stack is on a device; parameters are sharded on the CPU alone");
  }
  if (rounds()) {
    core::fail(SHARDREC_UNSUPPORTED,
               "the stack computes in 16 bits; one in FLOAT32 has parameters that are sharded");
  }
  if (accumulate_) {
    core::fail(SHARDREC_UNSUPPORTED,
               "the stack has the option ACCUMULATE_GRADIENTS; gradients of sharded parameters are "
               "added up by steps without sync");
  }
  places_.resize(layers_.size());
  units_ = std::move(units);
}

void Mlp::release_parameters() noexcept {
  parameters_.clear();
  is_sharded_ = true;
  batch_ = -1;  // of a forward with the parameters that are gone
}

void Mlp::forward_in_units(const core::Matrix& output) {
  try {
    for (size_t unit = 0; const LayerRange& range : units_->ranges()) {
      units_->unshard(unit);
      place(range, false);
      forward_layers(range, output);
      units_->reshard(unit++);
    }
  } catch (...) {
    batch_ = -1;
    throw;
  }
}

void Mlp::place(const LayerRange& range, bool gradients) {
  for (size_t l = range.begin; l < range.end; ++l) {
    for (size_t role = 0; role < kRoles; ++role) {
      const int64_t parameter = layers_[l].indices[role];
      if (parameter < 0) continue;
      places_[l].values[role] = units_->values(parameter);
      if (gradients) places_[l].gradients[role] = units_->gradients(parameter);
    }
  }
}

void Mlp::backward_in_units(const core::Matrix& output_gradient,
                            const core::Matrix& input_gradient) {
  const LayerUnitsUse use(*units_);
  units_->require_backward();
  const std::span<const LayerRange> ranges = units_->ranges();
  for (size_t unit = 0; unit < ranges.size(); ++unit) {
    GradientBatch batch = gradient_batch();
    batch.accumulate = units_->has_gradients(unit);
    for (size_t l = ranges[unit].begin; l < ranges[unit].end; ++l) {
      resize_for_backward(layers_[l], batch, tile_count(), kept_matrices(l));
    }
  }
  for (size_t unit = ranges.size(); unit-- > 0;) {
    const bool adds = units_->has_gradients(unit);
    units_->unshard(unit);
    if (batch_ > 0) {
      place(ranges[unit], true);
      backward_layers(ranges[unit], adds, output_gradient, input_gradient);
    }
    units_->mark_ready(unit);
  }
}

}  // namespace shardrec::dense
