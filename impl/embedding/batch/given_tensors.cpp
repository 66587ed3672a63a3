#include "embedding/batch/given_tensors.h"

#include <algorithm>
#include <span>

#include "core/tensor.h"

namespace shardrec::embedding {

void GivenTensors::read(const std::array<const shardrec_tensor*, kMost>& tensors,
                        compute::Backend& backend) {
  std::array<compute::StagedTensor, kMost> staged;
  size_t copies = 0;
  for (size_t t = 0; t < kMost; ++t) {
    const shardrec_tensor* const tensor = tensors[t];
    elements_[t] = tensor == nullptr ? nullptr : tensor->data;
    is_copied_[t] =
        tensor != nullptr && tensor->device_type == SHARDREC_DEVICE_CPU && !backend.reaches_host();
    if (!is_copied_[t]) continue;
    const auto size = static_cast<size_t>(tensor->shape[0]);
    staged[copies++] = {.here = tensor->data, .bytes = size * core::dtype_size(tensor->dtype)};
  }
  if (copies == 0) return;
  if (staging_ == nullptr) staging_ = backend.make_host_staging();
  staging_->send(std::span(staged).first(copies));
  const compute::StagedTensor* next = staged.data();
  for (size_t t = 0; t < kMost; ++t) {
    if (is_copied_[t]) elements_[t] = (next++)->there;
  }
}

void GivenTensors::release() {
  if (staging_ != nullptr) staging_->release();
}

compute::HostStaging* GivenTensors::staging_of(std::initializer_list<Given> which) const {
  const bool all = std::all_of(which.begin(), which.end(), [&](Given tensor) {
    return is_copied_[static_cast<size_t>(tensor)];
  });
  return all ? staging_.get() : nullptr;
}

}  // namespace shardrec::embedding
