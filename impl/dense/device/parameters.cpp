#include "dense/device/parameters.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "dense/device/kernels.h"

namespace shardrec::dense::device {

namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;

const std::byte* bytes_at(const float* floats, size_t offset) noexcept {
  return static_cast<const std::byte*>(static_cast<const void*>(floats)) + offset;
}
std::byte* bytes_at(float* floats, size_t offset) noexcept {
  return static_cast<std::byte*>(static_cast<void*>(floats)) + offset;
}

}  // namespace

DeviceParameters::DeviceParameters(Context& context, const Parameters& host)
    : context_(context),
      host_(host),
      values_(context.memory()),
      gradients_(context.memory()),
      scratch_(context.memory()) {
  const size_t states = state_names(host.optimizer().kind).size();
  for (size_t s = 0; s < states; ++s) states_.emplace_back(context.memory());
}

void DeviceParameters::send(const float* from, compute::Buffer& to) const {
  std::byte* const there = to.resize(bytes());
  for_pieces([&](size_t first, size_t size, std::byte* pinned) {
    std::memcpy(pinned, bytes_at(from, first), size);
    context_.stream().copy(there + first, pinned, size);
    context_.wait();
  });
}

void DeviceParameters::fetch(const compute::Buffer& from, float* to) const {
  for_pieces([&](size_t first, size_t size, std::byte* pinned) {
    context_.stream().copy(pinned, from.data() + first, size);
    context_.wait();
    std::memcpy(bytes_at(to, first), pinned, size);
  });
}

template <class Use>
void DeviceParameters::for_pieces(const Use& use) const {
  std::byte* const pinned = pinned_.resize(std::min(bytes(), kPieceBytes));
  for (size_t first = 0; first < bytes(); first += kPieceBytes) {
    use(first, std::min(kPieceBytes, bytes() - first), pinned);
  }
}

void DeviceParameters::upload() {
  if (bytes() == 0) return;
  send(host_.values(), values_);
  for (size_t s = 0; s < states_.size(); ++s) send(host_.state(static_cast<int>(s)), states_[s]);
  if (size_ == host_.size()) return;
  gradients_.resize(bytes());
  fill(context_.stream(), gradients(), 0, host_.size());
  size_ = host_.size();
}

void DeviceParameters::release() {
  const auto empty = [this](compute::Buffer& buffer) {
    buffer = compute::Buffer(context_.memory());
  };
  empty(values_);
  empty(gradients_);
  for (compute::Buffer& state : states_) empty(state);
  size_ = 0;
}

void DeviceParameters::download() const {
  if (bytes() == 0) return;
  fetch(values_, host_.values());
  for (size_t s = 0; s < states_.size(); ++s) fetch(states_[s], host_.state(static_cast<int>(s)));
}

void DeviceParameters::reserve_step(const compute::ElementUpdate& settings) {
  int64_t floats = 0;
  for (const ParameterInfo& info : host_.infos()) {
    floats = std::max(floats, update_scratch(settings.step.kind, info.size));
  }
  if (floats > 0) scratch_.resize_as<float>(static_cast<size_t>(floats));
}

void DeviceParameters::step(const compute::ElementUpdate& settings,
                            const shardrec_cuda_loss_scale* scaled) {
  // Without a scale, settings change from step to step: what is enqueued before and behind is launched without them.
  if (scaled == nullptr) context_.stream().submit();
  // LAMB's ratio is that of a parameter; for others they are one.
  if (settings.step.kind != compute::OptimizerKind::kLamb) {
    step(settings, 0, host_.size(), scaled);
  } else {
    for (const ParameterInfo& info : host_.infos()) step(settings, info.offset, info.size, scaled);
  }
  if (scaled == nullptr) context_.stream().submit();
}

void DeviceParameters::step(compute::ElementUpdate job, int64_t offset, int64_t count,
                            const shardrec_cuda_loss_scale* scaled) {
  job.weights = values(offset);
  job.gradients = gradients(offset);
  for (size_t s = 0; s < states_.size(); ++s) {
    job.matrices[s] = state(static_cast<int>(s), offset);
  }
  const int64_t floats = update_scratch(job.step.kind, count);
  float* const scratch =
      floats == 0 ? nullptr : scratch_.resize_as<float>(static_cast<size_t>(floats)).data();
  update_elements(context_.stream(), job, count, scratch, scaled);
}

}  // namespace shardrec::dense::device
