// Pinned memory that grows waits for nothing: to give some back would be to wait for all that the devices do,
// the caller's kernels among it, which may wait for messages of this rank themselves. Nor does the memory that
// the value of a wrong id is fetched into.
#include <chrono>
#include <cstring>
#include <future>

#include "compute/cuda/host/memory.h"
#include "device/held_streams.h"
#include "device/rank_on_device.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

class GrowingPinnedMemory : public HeldStreamsTest {
 protected:
  template <class Call>
  void expect_no_wait(const Call& call) {
    hold();
    compute::cuda::host::Event behind(0);
    behind.record(caller_);
    const std::future<void> called = std::async(std::launch::async, call);
    EXPECT_EQ(called.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    go_on_();
    called.wait();
    behind.wait();
  }
  template <class Room>
  void expect_to_grow(Room& room) {
    room.resize(1);
    expect_no_wait([&] {
      for (size_t bytes = 1; bytes < 100000; bytes *= 3) std::memset(room.resize(bytes), 1, bytes);
    });
  }
};

TEST_F(GrowingPinnedMemory, OfOperationsWaitsForNoDevice) {
  compute::cuda::host::PinnedRoom room;
  expect_to_grow(room);
}

TEST_F(GrowingPinnedMemory, OfMessagesWaitsForNoDevice) {
  compute::Buffer buffer(compute::cuda::host::make_pinned_memory());
  expect_to_grow(buffer);
}

TEST_F(GrowingPinnedMemory, OfBadBatchesWaitsForNoDevice) {
  Rank rank(0);
  ASSERT_EQ(rank.status(), SHARDREC_OK) << shardrec_last_error();
  Batch batch;
  const size_t id_bytes = batch.ids.size() * sizeof(int64_t);
  Array lengths(*this, batch.lengths.data(), batch.lengths.size() * sizeof(int32_t));
  const auto bags = vector_at(lengths.data(), SHARDREC_INT32, batch.lengths.size(), true);
  const auto out = matrix_at(batch.out.data(), false);
  const auto refuse = [&](Array& ids, int64_t id) {
    const auto values = vector_at(ids.data(), SHARDREC_INT64, batch.ids.size(), true);
    EXPECT_OK(
        begin_batch(rank.lookup(), {.batch_size = kBatch, .values = &values, .lengths = &bags}));
    EXPECT_EQ(shardrec_lookup_forward(rank.lookup(), 0, &out), SHARDREC_INVALID_BATCH);
    EXPECT_TRUE(contains(shardrec_last_error(), std::to_string(id))) << shardrec_last_error();
  };
  batch.ids.back() = kRows;
  Array first(*this, batch.ids.data(), id_bytes);
  batch.ids.back() = kRows + 1;
  Array second(*this, batch.ids.data(), id_bytes);
  refuse(first, kRows);  // what stays is there
  expect_no_wait([&] { refuse(second, kRows + 1); });
}

}  // namespace
}  // namespace shardrec::test
