// How a thread of the host waits for operations of a device.
#pragma once

#include <cstdint>

namespace shardrec::compute {

enum class HostWait : uint8_t {
  kSleep,  // until the driver wakes it: the processor does other work
  kSpin,  // it asks again and again, which takes a processor, and goes on some microseconds earlier
};

}  // namespace shardrec::compute
