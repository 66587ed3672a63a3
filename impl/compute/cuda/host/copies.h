// Copies of tensors for callers (shardrec_tensor_copy), in the order of a stream of theirs.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

#include "core/row_tensor.h"

namespace shardrec::compute::cuda::host {

// to and from: of one dtype and shape, each on the CPU or on a device. Over when the call returns where
// one of them is on the CPU; between two on a device, what is enqueued in the stream (0: the legacy
// default one) from now on finds it made.
// Throws UNSUPPORTED (no plug-in, two devices), INVALID_ARGUMENT (no such device, no stream of it),
// OUT_OF_MEMORY, DEVICE_ERROR.
void copy_tensor(const core::RowTensor& to, const core::RowTensor& from, int64_t stream);

}  // namespace shardrec::compute::cuda::host
