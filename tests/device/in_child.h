// Tests of what a process reads once: how many devices CUDA on the CPU has, and where plug-ins are.
#pragma once

#include <cstdlib>
#include <functional>

#include "capi/capi_test.h"
#include "device/of_plugin.h"

namespace shardrec::test {

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
