// The suite on the engines of engines.h.
#include <gtest/gtest.h>

#include <string>

#include "conformance/engines.h"

namespace shardrec::comm {
namespace {

std::string name_of(const testing::TestParamInfo<const Engine*>& info) {
  constexpr const char* kNames[] = {"Local", "Eager", "Rendezvous", "Slow"};
  return kNames[info.index];
}

const auto kEngines =
    testing::Values(local_engine(), eager_engine(), rendezvous_engine(), slow_engine());
INSTANTIATE_TEST_SUITE_P(InMemory, CollectiveConformance, kEngines, name_of);
INSTANTIATE_TEST_SUITE_P(InMemory, ExchangeConformance, kEngines, name_of);
INSTANTIATE_TEST_SUITE_P(InMemory, DdpConformance, kEngines, name_of);
INSTANTIATE_TEST_SUITE_P(InMemory, FsdpConformance, kEngines, name_of);
INSTANTIATE_TEST_SUITE_P(InMemory, FailureConformance, kEngines, name_of);

}  // namespace
}  // namespace shardrec::comm
