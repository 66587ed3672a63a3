// Pinned memory that grows waits for nothing: to give some back would be to wait for all that the devices do,
// the caller's kernels among it, which may wait for messages of this rank themselves.
#include <chrono>
#include <cstring>
#include <future>

#include "compute/device/memory.h"
#include "device/held_streams.h"

namespace shardrec::test {
namespace {

class GrowingPinnedMemory : public HeldStreamsTest {
 protected:
  template <class Room>
  void expect_no_wait(Room& room) {
    room.resize(1);
    hold();
    compute::device::Event behind(0);
    behind.record(caller_);
    const std::future<void> grown = std::async(std::launch::async, [&] {
      for (size_t bytes = 1; bytes < 100000; bytes *= 3) std::memset(room.resize(bytes), 1, bytes);
    });
    EXPECT_EQ(grown.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    go_on_();
    grown.wait();
    behind.wait();
  }
};

TEST_F(GrowingPinnedMemory, OfOperationsWaitsForNoDevice) {
  compute::device::PinnedRoom room;
  expect_no_wait(room);
}

TEST_F(GrowingPinnedMemory, OfMessagesWaitsForNoDevice) {
  compute::Buffer buffer(compute::device::make_pinned_memory());
  expect_no_wait(buffer);
}

}  // namespace
}  // namespace shardrec::test
