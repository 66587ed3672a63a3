#include "compute/cuda/host/devices.h"

#include "compute/cuda/host/plugin.h"
#include "core/error.h"

namespace shardrec::compute::cuda::host {
namespace {

DeviceDescription describe(int32_t index) {
  shardrec_cuda_device device{};
  require(table().describe_device(index, &device), "say what device ", index, " is");
  DeviceDescription description{
      .index = index,
      .name = device.name,
      .capability = core::sentence(device.capability_major, ".", device.capability_minor),
      .bytes = device.bytes,
      .l2_bytes = device.l2_bytes};
  if (device.free_bytes >= 0) description.free_bytes = static_cast<uint64_t>(device.free_bytes);
  return description;
}

}  // namespace

FoundDevices find_devices() {
  FoundDevices found;
  try {
    int32_t count = 0;
    require(table().count_devices(&count), "count its devices");
    for (int32_t index = 0; index < count; ++index) found.devices.push_back(describe(index));
    if (count == 0) found.missing = "CUDA sees no devices";
  } catch (const core::Error& error) {
    found.missing = error.sentence();
  }
  return found;
}

}  // namespace shardrec::compute::cuda::host
