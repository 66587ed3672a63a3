// NVIDIA's library: found, asked for its version, and its functions looked up by name. Part of the plug-in.
//
// Thread rule: any thread.
#pragma once

#include "comm/nccl/nccl_api.h"

namespace shardrec::comm::nccl {

// Loads the library that SHARDREC_NCCL_LIBRARY names, else libnccl.so.2, unless one is loaded, and sets table.library
// and table.version, or table.reason. Returns what the plug-in's function returns. A library that is refused stays
// in the process: it may have started threads.
int32_t load_library(shardrec_nccl_table& table) noexcept;

// The functions, once load_library() has returned FILLED.
const Api& api() noexcept;

}  // namespace shardrec::comm::nccl
