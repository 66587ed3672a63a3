// What a back end is made with, whatever its name.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/booked_memory.h"
#include "compute/host_wait.h"
#include "compute/stop.h"
#include "core/threads.h"

namespace shardrec::compute {

struct BackendOptions {
  core::Threads& threads;  // of the host; they outlive the back end
  // Number among the devices that the name stands for; of those that the host's memory is, it is not read.
  int32_t device = -1;
  // All ranks of the collection live in this process: their back ends may read each other's memory.
  bool peers_in_process = false;
  // The collection has no other rank: nobody else follows the back end's marks.
  bool alone = false;
  // Of what a step waits for, where it computes on a device.
  HostWait wait = HostWait::kSleep;
  // Bytes of what its operations, and those who use its memory, have allocated, but for tables; null: nobody counts.
  BookedBytes booked = nullptr;
  // Set where messages from other ranks are broken off in the middle of operations: rows do not change from then
  // on, and whoever waits for the back end's operations, or for what they tell, is told. Null: operations follow messages that have come as a whole.
  std::shared_ptr<const Stop> stop = nullptr;
};

}  // namespace shardrec::compute
