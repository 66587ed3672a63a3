// The name of a function of this process, for messages about kernels.
#pragma once

#include <cstddef>

namespace simt {

// Its demangled name, or where it is if the file has no name for it. Cut to `bytes`.
void symbol_name(const void* function, char* name, size_t bytes) noexcept;

}  // namespace simt
