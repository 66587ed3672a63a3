// The NCCL plug-in, loaded when ranks on devices first ask for NCCL.
//
// Where the plug-in is looked for: core/plugin.h. It loads NVIDIA's library (SHARDREC_NCCL_LIBRARY, else libnccl.so.2).
// Once loaded both stay. Any thread.
#pragma once

#include "comm/nccl/nccl_plugin.h"

namespace shardrec::comm::nccl {

// Loads the plug-in unless it is loaded. Throws UNSUPPORTED: the plug-in is missing or has another ABI, or NVIDIA's
// library is missing or too old; the sentence says what to install. After that the next call tries again.
const shardrec_nccl_table& table();
// Whether table() would succeed. Loads what there is.
bool is_available() noexcept;

}  // namespace shardrec::comm::nccl
