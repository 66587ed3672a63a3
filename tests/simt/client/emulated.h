// The emulated devices (tests/simt/include/simt/control.h), found in the plug-in for CUDA that the process has loaded:
// for libraries of the tests' own that stand in for NVIDIA's. This folder is compiled into each of them.
//
// Thread rule: any thread.
#pragma once

#include <cstdint>

#include "simt/control.h"

namespace simt {

struct Emulated {
  int (*enqueue_steps)(int64_t stream, const simt_step* steps, int count, void* argument);
  int (*enqueue_kernel)(int64_t stream, const simt_kernel* kernel, void* argument);
  int (*thread_captures)();
  int (*stream_captures)(int64_t stream);
  int (*current_device)();
  int (*device_of_stream)(int64_t stream);
};

// Null: none is loaded, as where there is no device.
const Emulated* emulated() noexcept;

}  // namespace simt
