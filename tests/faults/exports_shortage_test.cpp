// Memory of the host that runs out while a rank hands out what it makes for peers (comm/ipc/exports.h).
#include <gtest/gtest.h>

#include <memory>
#include <new>

#include "comm/ipc/exports.h"
#include "comm/world.h"
#include "faults/device_shortage.h"

namespace shardrec::test {
namespace {

TEST(ExportsShortage, AnEventThatCannotBeHandedOutIsFree) {
  if (!tables_are_on_devices()) GTEST_SKIP() << "events are of devices";
  const auto errors = comm::run_ranks(1, [](comm::Communicator& communicator) {
    const std::shared_ptr<comm::Communicator> group(&communicator, [](comm::Communicator*) {});
    const auto exports = std::make_shared<comm::ipc::Exports>(group, 0, nullptr);
    EXPECT_EQ(exports->take_event()->number, 1U);
    // The event is free again. The next allocation is the shared pointer's control block.
    fail_allocation(1, Shortage::kOnce);
    EXPECT_THROW((void)exports->take_event(), std::bad_alloc);
    EXPECT_TRUE(end_shortage());
    const auto event = exports->take_event();
    EXPECT_EQ(event->number, 1U);
    EXPECT_EQ(exports->take_event()->number, 2U);
  });
  EXPECT_FALSE(errors[0]) << errors[0]->sentence();
}

}  // namespace
}  // namespace shardrec::test
