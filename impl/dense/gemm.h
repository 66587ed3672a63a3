// Matrix products, computed by a plug-in that is loaded when it is first asked for: hosts that
// bring their own framework never load it.
//
// The plug-in is looked for in the folders of SHARDREC_PLUGIN_PATH (separated by colons) when that
// is set, else in `shardrec/` beside the file that holds this code, and in `../lib/shardrec/` from
// there (a program that holds this code itself). Once loaded it stays. All functions: any thread.
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
