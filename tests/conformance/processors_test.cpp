// The ranks of one machine divide its processors, in whatever processes they live.
#include <algorithm>
#include <memory>

#include "conformance/engine.h"
#include "core/threads.h"

namespace shardrec::comm {
namespace {

TEST_P(ExchangeConformance, RanksOfOneMachineTogetherTakeItsProcessorsOnce) {
  const int processors = core::default_thread_count(1);
  for (const int ranks : engine().worlds) {
    run_well(engine(), ranks, [&](Communicator& comm) {
      EXPECT_LE(comm.default_threads(), std::max(1, processors / ranks));
      EXPECT_GE(comm.default_threads(), 1);
    });
  }
}

TEST_P(ExchangeConformance, ASplitHasTheThreadsOfTheWhole) {
  if (!engine().offers(4)) GTEST_SKIP() << "needs 4 ranks";
  run_well(engine(), 4, [&](Communicator& comm) {
    comm.set_default_threads(7 + comm.rank());
    const auto half = comm.split(comm.rank() % 2, 0);
    EXPECT_EQ(half->default_threads(), 7 + comm.rank());
    half->leave();
  });
}

}  // namespace
}  // namespace shardrec::comm
