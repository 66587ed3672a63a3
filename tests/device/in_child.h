// The plug-in under test, and tests of what a process reads once: how many devices CUDA on the CPU has, and where
// plug-ins are.
#pragma once

#include <dlfcn.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "capi/capi_test.h"
#include "compute/device/plugin.h"

namespace shardrec::test {

// Does the plug-in under test do what SHARDREC_SIMT_... asks for?
inline bool is_on_cpu() { return std::strstr(compute::device::table().library, "CPU") != nullptr; }

// A function of the plug-in that stands in for CUDA on the CPU; null: it is another one.
template <class Function>
Function* of_plugin(const char* name) {
  Dl_info plugin{};
  void* const any_function = std::bit_cast<void*>(compute::device::table().count_devices);
  if (dladdr(any_function, &plugin) == 0) return nullptr;
  void* const library = dlopen(plugin.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return std::bit_cast<Function*>(dlsym(library, name));
}

// In a process of its own, which has loaded no plug-in and used no device.
inline void expect_in_child(const char* variable, const char* value,
                            const std::function<void()>& body) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv(variable, value, 1);
        body();
        std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace shardrec::test
