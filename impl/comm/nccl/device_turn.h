// NCCL wants one thread at a time to issue operations to all communicators of a device, with the device the thread's
// current one. Ranks that are threads of one process may share a device. Communicators end outside of the turn.
#pragma once

#include <cstdint>
#include <mutex>

namespace shardrec::comm::nccl {

// Held by who calls NCCL for a communicator of the device.
std::mutex& turn_of(int32_t device);

}  // namespace shardrec::comm::nccl
