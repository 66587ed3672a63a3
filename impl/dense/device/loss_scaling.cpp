#include "dense/device/loss_scaling.h"

#include <cstring>

#include "compute/cuda/jobs/scaling.h"
#include "dense/device/kernels.h"
#include "dense/element_optimizer.h"

namespace shardrec::dense::device {

LossScaling::LossScaling(Context& context, LossScale& host, Parameters& parameters)
    : context_(context), host_(host), parameters_(parameters), there_(context.memory()) {}

void LossScaling::upload() {
  const LossScaleState& state = host_.state();
  const shardrec_cuda_loss_scale now{.scale = static_cast<float>(state.scale),
                                     .inverse = static_cast<float>(1 / state.scale),
                                     .finite_backwards = state.finite_backwards,
                                     .steps = parameters_.steps(),
                                     .skipped_steps = state.skipped_steps};
  std::byte* const pinned = pinned_.resize(sizeof now);
  std::memcpy(pinned, &now, sizeof now);
  context_.stream().copy(there_.resize(sizeof now), pinned, sizeof now);
  context_.wait();
}

void LossScaling::download() {
  shardrec_cuda_loss_scale now;
  std::byte* const pinned = pinned_.resize(sizeof now);
  context_.stream().copy(pinned, there_.data(), sizeof now);
  context_.wait();
  std::memcpy(&now, pinned, sizeof now);
  host_.set_state({.scale = now.scale,
                   .finite_backwards = now.finite_backwards,
                   .skipped_steps = now.skipped_steps});
  parameters_.set_steps(now.steps);
}

shardrec_cuda_loss_scale* LossScaling::there() const noexcept {
  return static_cast<shardrec_cuda_loss_scale*>(
      const_cast<void*>(static_cast<const void*>(there_.data())));
}

void LossScaling::begin_backward() {
  // The one before has failed on its way: what it has told of is not this one's.
  if (in_backward_) {
    fill(context_.stream(), static_cast<float*>(static_cast<void*>(&there()->not_finite)), 0, 1);
  }
  in_backward_ = true;
}

void LossScaling::end_backward() {
  end_scaled_backward(context_.stream(), there(), host_.steps());
  in_backward_ = false;
}

void LossScaling::begin_step(const float* gradients) {
  const plan::Optimizer& optimizer = parameters_.optimizer();
  const bool has_moments = state_names(optimizer.kind).size() == 2;
  inspect(context_.stream(), gradients, parameters_.size(), there());
  begin_scaled_step(context_.stream(), there(), has_moments ? optimizer.beta1 : 0,
                    has_moments ? optimizer.beta2 : 0);
}

}  // namespace shardrec::dense::device
