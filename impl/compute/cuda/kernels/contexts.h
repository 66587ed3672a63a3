// The device that calls of a thread work on: its primary context, pushed and popped. cudaSetDevice() would
// make one on the device that it goes back to, 0 for a thread that never chose, and take that device's memory.
#pragma once

#include <cuda_runtime.h>

namespace shardrec::compute::cuda {

inline constexpr int kMostDevices = 64;  // of higher numbers there are none

// The calling thread's current device, until leave_device(). The first call for a device makes its primary
// context, which the process keeps.
cudaError_t enter_device(int device);
void leave_device();

// Was it before? Then the process has its context.
bool is_entered(int device);
// A device that was entered before, 0 if there was none: for memory of the host, which is of no device.
int any_entered_device();

}  // namespace shardrec::compute::cuda
