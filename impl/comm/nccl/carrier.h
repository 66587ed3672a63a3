// Bodies that go from device to device by NCCL (body_channel.h).
#pragma once

#include <memory>

#include "comm/bodies/carrier.h"
#include "comm/nccl/lanes.h"

namespace shardrec::comm::nccl {

// The back end is that of a CUDA device, and was made with the stop, which is of the communicator. Throws UNSUPPORTED
// (the plug-in, NVIDIA's library), DEVICE_ERROR, OUT_OF_MEMORY.
std::unique_ptr<BodyCarrier> make_carrier(compute::Backend& backend,
                                          std::shared_ptr<Communicator> communicator,
                                          std::shared_ptr<StopWord> stop,
                                          LaneSet lanes = LaneSet::kByPurpose);

// The same over lanes of the back end's device, which others use too.
std::unique_ptr<BodyCarrier> make_carrier(compute::Backend& backend, std::shared_ptr<Lanes> lanes);

}  // namespace shardrec::comm::nccl
