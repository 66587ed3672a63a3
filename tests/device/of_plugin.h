// The plug-in under test, and what it has where it stands in for CUDA on the CPU.
#pragma once

#include <dlfcn.h>

#include <bit>
#include <cstring>

#include "compute/cuda/host/plugin.h"

namespace shardrec::test {

// Does the plug-in under test do what SHARDREC_SIMT_... asks for?
inline bool is_on_cpu() {
  return std::strstr(compute::cuda::host::table().library, "CPU") != nullptr;
}

// A function of the plug-in that stands in for CUDA on the CPU; null: it is another one.
template <class Function>
Function* of_plugin(const char* name) {
  Dl_info plugin{};
  void* const any_function = std::bit_cast<void*>(compute::cuda::host::table().count_devices);
  if (dladdr(any_function, &plugin) == 0) return nullptr;
  void* const library = dlopen(plugin.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return std::bit_cast<Function*>(dlsym(library, name));
}

}  // namespace shardrec::test
