#include "checkpoint/contents/fsdp_parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "core/align.h"

namespace shardrec::checkpoint {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

FsdpState::FsdpState(dense::Fsdp& fsdp) : fsdp_(&fsdp), numbers_(std::make_unique<Numbers>()) {
  fsdp.require_idle("a checkpoint");
  const dense::ElementOptimizer* const optimizer = fsdp.optimizer();
  std::vector<std::string> states;
  if (optimizer != nullptr) states = dense::state_names(optimizer->optimizer().kind);
  size_t bytes = 0;
  const auto list = [&](int32_t what, const std::string& prefix) {
    for (size_t p = 0; p < fsdp.parameters().size(); ++p) {
      const dense::Fsdp::Parameter& parameter = fsdp.parameters()[p];
      arrays_.push_back(
          {.name = prefix + parameter.name, .parameter = p, .what = what, .at = bytes});
      bytes += core::align_up(static_cast<size_t>(parameter.elements) * sizeof(float), kAlignment);
    }
  };
  list(SHARDREC_FSDP_VALUES, "");
  for (size_t s = 0; s < states.size(); ++s) {
    list(SHARDREC_FSDP_STATE + static_cast<int32_t>(s), "optimizer." + states[s] + ".");
  }
  core::require_room(bytes, "whole parameters of a sharded set in a checkpoint");
  memory_ = std::make_shared<core::Pages>(bytes);
  if (optimizer == nullptr) return;
  numbers_->steps = optimizer->steps();
  numbers_->learning_rate = optimizer->learning_rate_was_set()
                                ? optimizer->optimizer().learning_rate
                                : std::numeric_limits<double>::quiet_NaN();
}

float* FsdpState::floats(const Array& array) const noexcept {
  return static_cast<float*>(static_cast<void*>(memory_->data() + array.at));
}

std::vector<DenseTensor> FsdpState::tensors() const {
  std::vector<DenseTensor> tensors;
  for (const Array& array : arrays_) {
    tensors.push_back({.name = array.name,
                       .dtype = SHARDREC_FLOAT32,
                       .shape = fsdp_->parameters()[array.parameter].shape,
                       .data = memory_->data() + array.at});
  }
  if (fsdp_->optimizer() == nullptr) return tensors;
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

void FsdpState::gather() {
  for (Array& array : arrays_) {
    const auto index = static_cast<int64_t>(array.parameter);
    const auto elements = static_cast<size_t>(fsdp_->parameter(index).elements);
    fsdp_->gather(index, array.what, {floats(array), elements});
    array.part = fsdp_->shard(index, array.what);
  }
}

void FsdpState::apply() noexcept {
  for (const Array& array : arrays_) {
    std::copy_n(floats(array) + array.part.offset, array.part.elements.size(),
                array.part.elements.data());
  }
  dense::ElementOptimizer* const optimizer = fsdp_->optimizer();
  if (optimizer == nullptr) return;
  optimizer->set_steps(numbers_->steps);
  if (std::isfinite(numbers_->learning_rate)) {
    optimizer->set_learning_rate(numbers_->learning_rate);
  }
}

}  // namespace shardrec::checkpoint
