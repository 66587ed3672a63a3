// The messages of huge.cpp within a process.
#include <gtest/gtest.h>

#include "conformance/engines.h"

namespace shardrec::comm {
namespace {

INSTANTIATE_TEST_SUITE_P(InMemory, HugeConformance,
                         testing::Values(local_engine(), rendezvous_engine()));

}  // namespace
}  // namespace shardrec::comm
