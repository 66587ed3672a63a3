// The back end of a CUDA device: the CPU's bits, from kernels of the plug-in (host/plugin.h), in the order of
// a stream of its own, and for row groups of a second one (host/rows/row_groups.h).
#pragma once

#include <memory>

#include "compute/backend.h"
#include "compute/backend_options.h"

namespace shardrec::compute::cuda {

// Where all ranks live in this process, bodies of messages stay on devices.
// Throws UNSUPPORTED (no plug-in), INVALID_ARGUMENT (no such device), OUT_OF_MEMORY, DEVICE_ERROR.
std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

}  // namespace shardrec::compute::cuda
