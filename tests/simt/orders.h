// Tests of which each runs in the three orders of threads.
#pragma once

#include <gtest/gtest.h>

#include "queue.h"
#include "simt/control.h"

namespace shardrec::test {

class InEachOrder : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { simt_set_order(GetParam(), 7); }
  void TearDown() override { simt_set_order(0, 0); }
};

// NOLINTNEXTLINE: a macro, as GoogleTest's are.
#define SIMT_IN_EACH_ORDER(suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(Orders, suite, testing::Values(0, 1, 2), [](const auto& order) { \
    return std::string(order.param == 0   ? "Ascending"                                     \
                       : order.param == 1 ? "Descending"                                    \
                                          : "Random");                                      \
  })

}  // namespace shardrec::test
