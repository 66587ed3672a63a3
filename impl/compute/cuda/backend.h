// The back end of a CUDA device: the CPU's bits, from kernels of the plug-in (host/plugin.h), in the order of
// a stream of its own, for row groups of a second one (host/rows/row_groups.h), and for batches of the host's of a third
// one (host/routing/pinned_staging.h).
#pragma once

#include <memory>

#include "compute/backend.h"
#include "compute/backend_options.h"
#include "compute/cuda/host/stream.h"

namespace shardrec::compute::cuda {

// Where all ranks live in this process, bodies of messages stay on devices.
// Throws UNSUPPORTED (no plug-in), INVALID_ARGUMENT (no such device), OUT_OF_MEMORY, DEVICE_ERROR.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);
// The same in the order of a stream that somebody else enqueues in too, by the back end's thread rule. The stream was
// made with what the options say of the device.
std::unique_ptr<Backend> make_cuda_backend(std::shared_ptr<host::Stream> stream,
                                           const BackendOptions& options);

}  // namespace shardrec::compute::cuda
