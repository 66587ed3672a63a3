// The back end of a CUDA device: the CPU's bits, from kernels of the plug-in (host/plugin.h), in the order of
// a stream of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/backend.h"
#include "core/threads.h"

namespace shardrec::compute::cuda {

// threads: of the host, for rows that are converted there. peers_in_process: as BackendOptions; bodies of
// messages then stay on devices. Throws UNSUPPORTED (no plug-in), INVALID_ARGUMENT (no such device),
// OUT_OF_MEMORY, DEVICE_ERROR.
std::unique_ptr<Backend> make_cuda_backend(int32_t device, core::Threads& threads,
                                           bool peers_in_process);

}  // namespace shardrec::compute::cuda
