#include "compute/cuda/host/current_device.h"

#include "compute/cuda/host/plugin.h"

namespace shardrec::compute::cuda::host {

CurrentDevice::CurrentDevice(int32_t device) {
  require(table().enter_device(device), "make device ", device, " the thread's current one");
}

CurrentDevice::~CurrentDevice() { table().leave_device(); }

}  // namespace shardrec::compute::cuda::host
