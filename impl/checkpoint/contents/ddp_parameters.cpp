#include "checkpoint/contents/ddp_parameters.h"

#include <cmath>
#include <limits>
#include <span>
#include <string>

namespace shardrec::checkpoint {

DdpState::DdpState(dense::Ddp& ddp) : ddp_(&ddp), numbers_(std::make_unique<Numbers>()) {
  ddp.fetch();
  const dense::ElementOptimizer* optimizer = ddp.optimizer();
  if (optimizer == nullptr) return;
  numbers_->steps = optimizer->steps();
  numbers_->learning_rate = optimizer->learning_rate_was_set()
                                ? optimizer->optimizer().learning_rate
                                : std::numeric_limits<double>::quiet_NaN();
}

std::vector<DenseTensor> DdpState::tensors() const {
  std::vector<DenseTensor> tensors;
  for (const dense::Ddp::Parameter& parameter : ddp_->parameters()) {
    tensors.push_back({.name = parameter.name,
                       .dtype = parameter.dtype,
                       .shape = parameter.shape,
                       .data = parameter.value_bytes().data()});
  }
  const dense::ElementOptimizer* optimizer = ddp_->optimizer();
  if (optimizer == nullptr) return tensors;
  const std::vector<std::string> states = dense::state_names(optimizer->optimizer().kind);
  for (size_t s = 0; s < states.size(); ++s) {
    for (size_t p = 0; p < ddp_->parameters().size(); ++p) {
      const std::span<float> state = optimizer->state(p, static_cast<int>(s));
      tensors.push_back({.name = "optimizer." + states[s] + "." + ddp_->parameters()[p].name,
                         .dtype = SHARDREC_FLOAT32,
                         .shape = ddp_->parameters()[p].shape,
                         .data = std::as_writable_bytes(state).data()});
    }
  }
  const auto number = [&](const char* name, shardrec_dtype dtype, auto& value) {
    tensors.push_back({.name = name,
                       .dtype = dtype,
                       .shape = {1},
                       .data = std::as_writable_bytes(std::span(&value, 1)).data()});
  };
  number("optimizer.steps", SHARDREC_INT64, numbers_->steps);
  number("optimizer.learning_rate", SHARDREC_FLOAT64, numbers_->learning_rate);
  return tensors;
}

void DdpState::apply() noexcept {
  ddp_->publish();
  dense::ElementOptimizer* optimizer = ddp_->optimizer();
  if (optimizer == nullptr) return;
  optimizer->set_steps(numbers_->steps);
  if (std::isfinite(numbers_->learning_rate)) {
    optimizer->set_learning_rate(numbers_->learning_rate);
  }
}

}  // namespace shardrec::checkpoint
