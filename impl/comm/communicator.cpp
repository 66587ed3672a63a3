#include "comm/communicator.h"

#include <atomic>

namespace shardrec::comm {
namespace {

constinit std::atomic<DeviceBodies> usual{DeviceBodies::kHost};

}  // namespace

DeviceBodies default_device_bodies() noexcept { return usual.load(std::memory_order_relaxed); }

void set_default_device_bodies(DeviceBodies bodies) noexcept {
  usual.store(bodies, std::memory_order_relaxed);
}

}  // namespace shardrec::comm
