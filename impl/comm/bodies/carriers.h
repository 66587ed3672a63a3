// The carriers that there are (carrier.h), one file each.
#pragma once

#include <memory>

#include "comm/bodies/carrier.h"

namespace shardrec::comm {

// The back end's memory is the host's.
std::unique_ptr<BodyCarrier> make_in_place_carrier(compute::Backend& backend);
// It is not, and peers do not reach it.
std::unique_ptr<BodyCarrier> make_copied_carrier(compute::Backend& backend);
// The back ends of all ranks are devices of this process, and have marks. memory: of the back end's device, where
// bodies are written.
std::unique_ptr<BodyCarrier> make_shared_carrier(compute::Backend& backend,
                                                 std::shared_ptr<compute::Memory> memory);

}  // namespace shardrec::comm
