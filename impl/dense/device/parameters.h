// The parameters of a stack in the memory of a device: values, gradients and optimizer states, laid out as the host
// has them (dense/parameters.h).
//
// Thread rule: that of the context.
#pragma once

#include <cstdint>
#include <vector>

#include "compute/buffer.h"
#include "compute/cuda/host/memory.h"
#include "dense/device/context.h"
#include "dense/parameters.h"

namespace shardrec::dense::device {

class DeviceParameters {
 public:
  DeviceParameters(Context& context, const Parameters& host);

  // Both throw OUT_OF_MEMORY, DEVICE_ERROR, and return when the memory has been copied: values and states, from the
  // host or to it. Where there are more parameters than at the last upload(), gradients become 0.
  void upload();
  void download() const;

  // Gives back all memory: the host has no parameters any more.
  void release();

  int64_t size() const noexcept { return host_.size(); }
  // After the first upload(); of an element.
  float* values(int64_t offset = 0) noexcept { return at(values_, offset); }
  float* gradients(int64_t offset = 0) noexcept { return at(gradients_, offset); }
  float* state(int state, int64_t offset = 0) noexcept {
    return at(states_[static_cast<size_t>(state)], offset);
  }

  // Memory for such a step: then it needs no more. Throws OUT_OF_MEMORY.
  void reserve_step(const compute::ElementUpdate& settings);
  // One step on all parameters, enqueued. settings: of the step (Parameters::begin_step()). scaled: the step that has
  // begun there, with its bias corrections; null: one that is taken, with those of the settings.
  void step(const compute::ElementUpdate& settings,
            const shardrec_cuda_loss_scale* scaled = nullptr);

 private:
  static float* at(compute::Buffer& buffer, int64_t offset) noexcept {
    return static_cast<float*>(static_cast<void*>(buffer.data())) + offset;
  }
  size_t bytes() const noexcept { return static_cast<size_t>(host_.size()) * sizeof(float); }
  void step(compute::ElementUpdate job, int64_t offset, int64_t count,
            const shardrec_cuda_loss_scale* scaled);
  // use(first byte, bytes, pinned memory) for parts of an array.
  template <class Use>
  void for_pieces(const Use& use) const;
  void send(const float* from, compute::Buffer& to) const;
  void fetch(const compute::Buffer& from, float* to) const;

  Context& context_;
  const Parameters& host_;
  int64_t size_ = 0;  // at the last upload()
  compute::Buffer values_;
  compute::Buffer gradients_;
  std::vector<compute::Buffer> states_;
  compute::Buffer scratch_;  // of a step
  mutable compute::cuda::host::PinnedRoom pinned_;
};

}  // namespace shardrec::dense::device
