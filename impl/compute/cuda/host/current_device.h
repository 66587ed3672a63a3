// A device as the calling thread's current one, for libraries of NVIDIA's that work on that.
//
// Thread rule: an object by the thread that made it.
#pragma once

#include <cstdint>

namespace shardrec::compute::cuda::host {

// The device is the thread's current one while this lives. They nest.
class CurrentDevice {
 public:
  // Throws DEVICE_ERROR.
  explicit CurrentDevice(int32_t device);
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
};

}  // namespace shardrec::compute::cuda::host
