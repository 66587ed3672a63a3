#include "dense/ddp/device_values.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dense/device/kernels.h"

namespace shardrec::dense {
namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;

float* floats(std::byte* bytes) noexcept { return static_cast<float*>(static_cast<void*>(bytes)); }

}  // namespace

DeviceValues::DeviceValues(DeviceBuckets& buckets, std::vector<DeviceParameter> parameters,
                           ElementOptimizer* optimizer)
    : buckets_(buckets),
      parameters_(std::move(parameters)),
      optimizer_(optimizer),
      gradients_(buckets.stream()),
      scratch_(buckets.memory()) {
  int64_t elements = 0;
  int64_t scratch = 0;
  for (const DeviceParameter& parameter : parameters_) {
    gradients_.add(
        {.data = parameter.gradient, .size = parameter.elements, .dtype = parameter.dtype});
    first_element_.push_back(elements);
    elements += parameter.elements;
    if (optimizer_ == nullptr) continue;
    const auto kind = optimizer_->settings().step.kind;
    scratch = std::max(scratch, device::update_scratch(kind, parameter.elements));
  }
  scratch_.resize_as<float>(static_cast<size_t>(scratch));
  for (int s = 0; optimizer_ != nullptr && s < optimizer_->states(); ++s) {
    compute::Buffer& state = states_.emplace_back(buckets.memory());
    float* const zeros = state.resize_as<float>(static_cast<size_t>(elements)).data();
    device::fill(*buckets_.stream(), zeros, 0, elements);
  }
}

void DeviceValues::zero_gradients() {
  buckets_.sources().follow_all();
  gradients_.clear();
  buckets_.sources().hold_up_all();
}

double DeviceValues::clip_gradients(shardrec_clip kind, double bound) {
  buckets_.sources().follow_all();
  const double norm = kind == SHARDREC_CLIP_L2 ? l2_norm(gradients_) : infinity_norm(gradients_);
  if (kind == SHARDREC_CLIP_VALUE) {
    gradients_.bound(bound);
  } else if (const std::optional<double> factor = clip_factor(norm, bound)) {
    gradients_.scale(*factor);
  }
  buckets_.sources().hold_up_all();
  return norm;
}

void DeviceValues::step_one(size_t parameter, const compute::ElementUpdate& settings) {
  const DeviceParameter& its = parameters_[parameter];
  compute::ElementUpdate job = settings;
  job.weights = floats(its.values);
  job.gradients = static_cast<const float*>(its.gradient);
  for (size_t s = 0; s < states_.size(); ++s) {
    job.matrices[s] = state(parameter, static_cast<int>(s));
  }
  device::update_elements(*buckets_.stream(), job, its.elements, floats(scratch_.data()));
}

// Settings change from step to step: what is enqueued before and behind is launched without them.
void DeviceValues::step(size_t first, size_t count) {
  buckets_.sources().follow_all();
  const compute::ElementUpdate settings = optimizer_->settings();
  buckets_.submit();
  for (size_t p = first; p < first + count; ++p) step_one(p, settings);
  buckets_.submit();
  buckets_.sources().hold_up_all();
}

void DeviceValues::step_reduced(std::span<const int32_t> parameters) {
  const compute::ElementUpdate settings = optimizer_->settings();
  buckets_.submit();
  for (const int32_t p : parameters) step_one(static_cast<size_t>(p), settings);
  buckets_.submit();
}

float* DeviceValues::state(size_t parameter, int state) {
  return floats(states_[static_cast<size_t>(state)].data()) + first_element_[parameter];
}

template <class Use>
void DeviceValues::for_each_copy(const Use& use) {
  size_t most = 1;
  for (const DeviceParameter& its : parameters_) {
    const size_t element = std::max(core::dtype_size(its.dtype), sizeof(float));
    most = std::max(most, static_cast<size_t>(its.elements) * element);
  }
  std::byte* const pinned = pinned_.resize(std::min(most, kPieceBytes));
  const auto in_pieces = [&](std::byte* there, std::byte* here, size_t bytes) {
    for (size_t at = 0; at < bytes; at += kPieceBytes) {
      use(there + at, here + at, std::min(kPieceBytes, bytes - at), pinned);
    }
  };
  buckets_.sources().follow_all();
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const DeviceParameter& its = parameters_[p];
    const auto elements = static_cast<size_t>(its.elements);
    in_pieces(its.values, its.host_values, elements * core::dtype_size(its.dtype));
    for (int s = 0; s < static_cast<int>(states_.size()); ++s) {
      in_pieces(static_cast<std::byte*>(static_cast<void*>(state(p, s))),
                std::as_writable_bytes(optimizer_->state(p, s)).data(), elements * sizeof(float));
    }
  }
}

void DeviceValues::fetch() {
  receive();
  for_each_copy([&](std::byte* there, std::byte* here, size_t bytes, std::byte* pinned) {
    buckets_.stream()->copy(pinned, there, bytes);
    buckets_.wait();
    std::memcpy(here, pinned, bytes);
  });
}

void DeviceValues::receive() {
  if (!host_is_newer_) return;
  for_each_copy([&](std::byte* there, std::byte* here, size_t bytes, std::byte* pinned) {
    std::memcpy(pinned, here, bytes);
    buckets_.stream()->copy(there, pinned, bytes);
    buckets_.wait();
  });
  host_is_newer_ = false;
}

}  // namespace shardrec::dense
