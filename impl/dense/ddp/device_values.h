// Values, gradients and optimizer states of a set whose parameters are on a device: steps, norms and copies to and from
// the host's memory, with the bits of the CPU's.
//
// Operations are enqueued in the set's stream, behind what the sources of its gradients hold (device_sources.h), which
// they hold up. Throws OUT_OF_MEMORY, DEVICE_ERROR, INVALID_ARGUMENT where the caller's stream is none.
// Thread rule: that of the set's stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dense/ddp/device_buckets.h"
#include "dense/device/gradients.h"
#include "dense/element_optimizer.h"
#include "shardrec/ddp.h"

namespace shardrec::dense {

// Where one parameter is.
struct DeviceParameter {
  std::byte* values = nullptr;
  void* gradient = nullptr;
  std::byte* host_values = nullptr;  // the copy of the host's
  int64_t elements = 0;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
};

class DeviceValues {
 public:
  // optimizer: keeps the settings, and the host's copies of the states; null: there is none. Both outlive this.
  DeviceValues(DeviceBuckets& buckets, std::vector<DeviceParameter> parameters,
               ElementOptimizer* optimizer);

  void zero_gradients();
  // As GradientNorm; kind: what is bounded. Returns the norm before.
  double clip_gradients(shardrec_clip kind, double bound);
  // By parameter: the position of the first element of its gradient that is not finite; -1: none is not.
  std::span<const int64_t> non_finite() { return gradients_.non_finite(); }

  // Steps parameters as ElementOptimizer::step(), behind its begin_step().
  void step(size_t first, size_t count);
  // The same of parameters whose gradients the set's stream has written last.
  void step_reduced(std::span<const int32_t> parameters);
  float* state(size_t parameter, int state);

  // The host's copies become what the device has; or the device has what they are, if that has not been so since
  // host_changed().
  void fetch();
  void host_changed() noexcept { host_is_newer_ = true; }
  void receive();

 private:
  void step_one(size_t parameter, const compute::ElementUpdate& settings);
  // use(on the device, the host's copy, bytes) for values and states.
  template <class Use>
  void for_each_copy(const Use& use);

  DeviceBuckets& buckets_;
  const std::vector<DeviceParameter> parameters_;
  ElementOptimizer* optimizer_;
  device::Gradients gradients_;
  std::vector<compute::Buffer> states_;
  std::vector<int64_t> first_element_;  // by parameter: where its states begin
  compute::Buffer scratch_;             // of a step
  compute::cuda::host::PinnedRoom pinned_;
  bool host_is_newer_ = false;
};

}  // namespace shardrec::dense
