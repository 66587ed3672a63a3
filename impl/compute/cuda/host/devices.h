// The CUDA devices of this process, as far as they can be known without using them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardrec::compute::cuda::host {

struct DeviceDescription {
  int32_t index = 0;  // what option DEVICE names it by
  std::string name;
  std::string capability;              // compute capability: "9.0"
  uint64_t bytes = 0;                  // of its memory
  int64_t l2_bytes = 0;                // of its cache
  std::optional<uint64_t> free_bytes;  // known once this process has begun to use the device
};

struct FoundDevices {
  std::vector<DeviceDescription> devices;
  // Why there are none, or not all of them: a sentence. Empty: these are all.
  std::string missing;
};

// Loads the plug-in where it is installed; begins to use no device. A plug-in or a driver that is
// missing, or fails, is said in `missing`. Any thread. Throws nothing but std::bad_alloc.
FoundDevices find_devices();

}  // namespace shardrec::compute::cuda::host
