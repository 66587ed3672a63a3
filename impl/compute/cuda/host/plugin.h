// The CUDA plug-in, loaded when a device is first asked for.
//
// Where the plug-in is looked for: core/plugin.h. Once loaded it stays. All functions: any thread.
#pragma once

#include <string_view>

#include "compute/cuda/jobs/cuda_plugin.h"
#include "core/error.h"

namespace shardrec::compute::cuda::host {

using Table = shardrec_cuda_table;

// Loads the plug-in unless it is loaded. Throws UNSUPPORTED: the plug-in is missing (names the files
// looked for and what to install) or speaks another ABI (names both numbers).
const Table& table();
// Null until a call of table() has loaded it.
const Table* loaded_table() noexcept;

// Throws what an error of the plug-in means: OUT_OF_MEMORY, or DEVICE_ERROR. `what` is what was to be done:
// "CUDA could not " what ": out of memory (cudaErrorMemoryAllocation)". Of a library that is called among the operations,
// it is the library's sentence (library_calls.h).
[[noreturn]] void refuse(shardrec_cuda_error error, std::string_view what);

// Throws so where there is an error; `what` is put together only then.
template <class... Items>
void require(shardrec_cuda_error error, const Items&... what) {
  if (error != SHARDREC_CUDA_OK) refuse(error, core::sentence(what...));
}

}  // namespace shardrec::compute::cuda::host
