#include "comm/nccl/device_turn.h"

#include <map>

#include "compute/cuda/host/plugin.h"
#include "core/error.h"

namespace shardrec::comm::nccl {

namespace {

namespace host = compute::cuda::host;

}  // namespace

CurrentDevice::CurrentDevice(int32_t device) {
  host::require(host::table().enter_device(device),
                core::sentence("make device ", device, " the thread's current one"));
}

CurrentDevice::~CurrentDevice() { host::table().leave_device(); }

std::mutex& turn_of(int32_t device) {
  // Never destroyed: other threads may train while the process ends.
  static std::mutex& mutex = *new std::mutex;
  static auto& turns = *new std::map<int32_t, std::mutex>;
  const std::lock_guard lock(mutex);
  return turns[device];
}

}  // namespace shardrec::comm::nccl
