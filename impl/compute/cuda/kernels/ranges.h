// Ranges for NVIDIA's profilers (NVTX): what the host does in a step, beside the kernels that it starts.
#pragma once

namespace shardrec::compute::cuda {

// Of the calling thread, in the domain "shardrec"; they nest. Without a profiler, a few instructions.
void begin_range(const char* name);
void end_range();

}  // namespace shardrec::compute::cuda
