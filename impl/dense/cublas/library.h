// NVIDIA's library: found, asked for its version, and its functions looked up by name. Part of the plug-in.
//
// Thread rule: any thread.
#pragma once

#include "dense/cublas/cublaslt_api.h"

namespace shardrec::dense::cublas {

// Loads the library that SHARDREC_CUBLASLT_LIBRARY names, else libcublasLt.so.13, else libcublasLt.so.12, unless one is
// loaded, and sets table.library and table.version, or table.reason. Returns what the plug-in's function returns. A
// library that is refused stays in the process: it may have started threads.
int32_t load_library(shardrec_cublas_table& table) noexcept;

// The functions, once load_library() has returned FILLED.
const Api& api() noexcept;

// Remembers what a call of the library said, where that is an error, for last_error(), and returns it.
Status checked(const char* call, Status status) noexcept;
// As shardrec_cublas_table has it.
const char* last_error() noexcept;

}  // namespace shardrec::dense::cublas
