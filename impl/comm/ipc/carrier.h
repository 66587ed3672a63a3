// Bodies that go from device to device between processes of one machine, by CUDA IPC (body_channel.h); or through the
// hosts, where that cannot be.
#pragma once

#include <memory>

#include "comm/bodies/carrier.h"
#include "compute/booked_memory.h"

namespace shardrec::comm::ipc {

// The carrier that goes with the back end: of a CUDA device of a rank among several processes one that is this when
// it is connected, where all ranks are processes of one machine and reach each other's devices; else comm::make_carrier's.
// booked: counts memory that peers open; or null.
// The environment variable SHARDREC_DEVICE_IPC=0, on any rank: it is not tried. Throws INVALID_ARGUMENT (another value
// than 0 and 1), DEVICE_ERROR, OUT_OF_MEMORY.
std::unique_ptr<BodyCarrier> make_carrier(compute::Backend& backend,
                                          std::shared_ptr<Communicator> communicator,
                                          compute::BookedBytes booked);

}  // namespace shardrec::comm::ipc
