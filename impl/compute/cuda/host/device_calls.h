// What this process has called of the CUDA runtime, by the plug-in's count.
//
// Thread rule: any thread, while others call.
#pragma once

#include "core/exposition.h"

namespace shardrec::compute::cuda::host {

// Families shardrec_device_*, which capi/NAMES.md explains; zeros while no plug-in is loaded, which this does not load.
void write_device_calls(core::Exposition& out);

}  // namespace shardrec::compute::cuda::host
