// Initial values of rows on a device (compute::InitialRows).
#pragma once

#include "compute/cuda/host/stream.h"
#include "compute/transfer_operations.h"

namespace shardrec::compute::cuda::host {

// Enqueued when the call returns.
void fill(const InitialRows& rows, Stream& stream);

}  // namespace shardrec::compute::cuda::host
