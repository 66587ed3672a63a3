// Initial values of rows on a device (compute::InitialRows).
#pragma once

#include "compute/device/stream.h"
#include "compute/operations.h"

namespace shardrec::compute::device {

// Enqueued when the call returns.
void fill(const InitialRows& rows, Stream& stream);

}  // namespace shardrec::compute::device
