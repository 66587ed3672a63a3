#include "checkpoint/contents/fsdp_parameters.h"

#include <cmath>
#include <limits>
#include <span>
#include <utility>

namespace shardrec::checkpoint {

FsdpState::FsdpState(dense::Fsdp& fsdp) : arrays_(fsdp), numbers_(std::make_unique<Numbers>()) {
  const dense::ElementOptimizer* const optimizer = fsdp.optimizer();
  std::vector<std::string> states;
  if (optimizer != nullptr) states = dense::state_names(optimizer->optimizer().kind);
  const auto list = [&](int32_t what, const std::string& prefix) {
    for (size_t p = 0; p < fsdp.parameters().size(); ++p) {
      const auto parameter = static_cast<int64_t>(p);
      arrays_.add(parameter, what);
      names_.push_back({.name = prefix + fsdp.parameters()[p].name, .parameter = parameter});
    }
  };
  list(SHARDREC_FSDP_VALUES, "");
  for (size_t s = 0; s < states.size(); ++s) {
    list(SHARDREC_FSDP_STATE + static_cast<int32_t>(s), "optimizer." + states[s] + ".");
  }
  arrays_.make_room();
  if (optimizer == nullptr) return;
  numbers_->steps = optimizer->steps();
  numbers_->learning_rate = optimizer->learning_rate_was_set()
                                ? optimizer->optimizer().learning_rate
                                : std::numeric_limits<double>::quiet_NaN();
}

std::vector<DenseTensor> FsdpState::tensors() const {
  std::vector<DenseTensor> tensors;
  for (size_t a = 0; a < names_.size(); ++a) {
    tensors.push_back({.name = names_[a].name,
                       .dtype = SHARDREC_FLOAT32,
                       .shape = arrays_.set().parameter(names_[a].parameter).shape,
                       .data = arrays_.data(a)});
  }
  if (arrays_.set().optimizer() == nullptr) return tensors;
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

void FsdpState::apply() noexcept {
  arrays_.apply();
  dense::ElementOptimizer* const optimizer = arrays_.set().optimizer();
  if (optimizer == nullptr) return;
  optimizer->set_steps(numbers_->steps);
  if (std::isfinite(numbers_->learning_rate)) {
    optimizer->set_learning_rate(numbers_->learning_rate);
  }
}

}  // namespace shardrec::checkpoint
