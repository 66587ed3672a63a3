// Matrix products, computed by a plug-in that is loaded when it is first asked for: hosts that
// bring their own framework never load it.
//
// Where the plug-in is looked for: core/plugin.h. Once loaded it stays. All functions: any thread.
#pragma once

#include <string>

#include "dense/gemm_plugin.h"

namespace shardrec::dense {

using Gemm = shardrec_gemm_table;

// Loads the plug-in unless it is loaded. Throws UNSUPPORTED: the plug-in is missing (names the
// files looked for and what to install) or speaks another ABI (names both numbers).
const Gemm& gemm();

// Whether gemm() would succeed.
bool gemm_available() noexcept;

}  // namespace shardrec::dense
