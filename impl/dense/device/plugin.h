// The cuBLASLt plug-in, loaded when a product on a device is first asked for.
//
// Where the plug-in is looked for: core/plugin.h. It loads NVIDIA's library (SHARDREC_CUBLASLT_LIBRARY, else
// libcublasLt.so.13 or .12). Once loaded both stay. Any thread.
#pragma once

#include "dense/cublas/cublas_plugin.h"

namespace shardrec::dense::device {

// Loads the plug-in unless it is loaded. Throws UNSUPPORTED: the plug-in is missing or has another ABI, or NVIDIA's
// library is missing or too old; the sentence says what to install. After that the next call tries again.
const shardrec_cublas_table& table();

}  // namespace shardrec::dense::device
