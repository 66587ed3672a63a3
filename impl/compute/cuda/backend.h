// The back end of a CUDA device: the CPU's bits, from kernels of the plug-in (host/plugin.h), in the order of
// a stream of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "compute/backend.h"
#include "compute/booked_memory.h"
#include "core/threads.h"

namespace shardrec::compute::cuda {

struct CudaBackendOptions {
  int32_t device = 0;
  core::Threads& threads;  // of the host, for rows that are converted there
  // As in BackendOptions (backends/registry.h): bodies of messages then stay on devices.
  bool peers_in_process = false;
  BookedBytes booked = nullptr;  // likewise
};

// Throws UNSUPPORTED (no plug-in), INVALID_ARGUMENT (no such device), OUT_OF_MEMORY, DEVICE_ERROR.
std::unique_ptr<Backend> make_cuda_backend(const CudaBackendOptions& options);

}  // namespace shardrec::compute::cuda
