// Tensors on the device in the order of the caller's stream, without a wait of the host.
#include <cstring>

#include "capi/capi_test.h"
#include "compute/cuda/host/stream.h"
#include "device/held_streams.h"
#include "device/rank_on_device.h"
#include "shardrec/native.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

using compute::cuda::host::PinnedMemory;

// A caller that enqueues all it does in a stream of its own.
class CallerStreams : public HeldStreamsTest {
 protected:
  // Bytes on the device that the caller's stream copies there and back.
  struct Slot {
    Slot(CallerStreams& test, const void* data, size_t bytes)
        : pinned(bytes), there(test.memory_->allocate(bytes)) {
      std::memcpy(pinned.data(), data, bytes);
      test.stream_->wait();  // it is the allocator's
    }
    PinnedMemory pinned;
    std::unique_ptr<compute::Allocation> there;
  };
  void send(Slot& slot) { caller_.copy(slot.there->data, slot.pinned.data(), slot.pinned.size()); }
  void fetch(Slot& slot) { caller_.copy(slot.pinned.data(), slot.there->data, slot.pinned.size()); }
  void overwrite(Slot& slot) {
    compute::cuda::host::require(compute::cuda::host::table().fill(
                                     caller_.handle(), slot.there->data, 0, slot.pinned.size()),
                                 "overwrite what was given");
  }
};

TEST_F(CallerStreams, OrderWhatIsReadAndWritten) {
  Rank cpu(-1);
  Rank device(0);
  ASSERT_EQ(device.status(), SHARDREC_OK) << shardrec_last_error();
  ASSERT_OK(shardrec_lookup_set_stream(device.lookup(), caller_.number()));
  for (int s = 0; s < 3; ++s) {
    Batch batch;
    cpu.step(vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false),
             vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false),
             matrix_at(batch.out.data(), false), matrix_at(batch.gradient.data(), false));
    Slot ids(*this, batch.ids.data(), batch.ids.size() * sizeof(int64_t));
    Slot lengths(*this, batch.lengths.data(), batch.lengths.size() * sizeof(int32_t));
    const std::vector<float> zeros(batch.out.size());
    Slot out(*this, zeros.data(), zeros.size() * sizeof(float));
    Slot gradient(*this, batch.gradient.data(), batch.gradient.size() * sizeof(float));
    const auto ids_there = vector_at(ids.there->data, SHARDREC_INT64, batch.ids.size(), true);
    const auto lengths_there =
        vector_at(lengths.there->data, SHARDREC_INT32, batch.lengths.size(), true);
    const auto out_there = matrix_at(out.there->data, true);
    const auto gradient_there = matrix_at(gradient.there->data, true);

    hold();
    send(ids);
    send(lengths);
    go_on_during([&] {
      ASSERT_OK(
          begin_batch(device.lookup(),
                      {.batch_size = kBatch, .values = &ids_there, .lengths = &lengths_there}));
    });
    overwrite(ids);
    overwrite(lengths);
    ASSERT_OK(shardrec_lookup_forward(device.lookup(), 0, &out_there));
    fetch(out);
    // Nothing of what set_gradient reads is there before it returns.
    hold();
    send(gradient);
    ASSERT_OK(shardrec_lookup_set_gradient(device.lookup(), 0, &gradient_there));
    overwrite(gradient);
    go_on_during(
        [&] { ASSERT_OK(shardrec_lookup_backward(device.lookup(), SHARDREC_UPDATE_APPLY)); });
    caller_.wait();
    ASSERT_EQ(std::memcmp(out.pinned.data(), batch.out.data(), out.pinned.size()), 0) << s;
  }
  ASSERT_OK(shardrec_collection_wait_device(device.tables()));
  EXPECT_EQ(cpu.rows(), device.rows());
}

TEST_F(CallerStreams, AreOfTheDevice) {
  Rank device(0);
  ASSERT_EQ(device.status(), SHARDREC_OK);
  EXPECT_EQ(shardrec_lookup_set_stream(device.lookup(), 1 << 20), SHARDREC_INVALID_ARGUMENT);
  EXPECT_TRUE(contains(shardrec_last_error(), "no stream of device 0")) << shardrec_last_error();
  // It is as it was.
  Batch batch;
  device.step(vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false),
              vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false),
              matrix_at(batch.out.data(), false), matrix_at(batch.gradient.data(), false));
  EXPECT_OK(shardrec_lookup_set_stream(device.lookup(), 0));
}

TEST_F(CallerStreams, MeanNothingOnTheCpu) {
  Rank cpu(-1);
  EXPECT_OK(shardrec_lookup_set_stream(cpu.lookup(), 12345));
  EXPECT_OK(shardrec_collection_wait_device(cpu.tables()));
  EXPECT_EQ(shardrec_lookup_set_stream(nullptr, 0), SHARDREC_INVALID_HANDLE);
  EXPECT_EQ(shardrec_collection_wait_device(nullptr), SHARDREC_INVALID_HANDLE);
}

// Begin does not wait for its operations: where it is told that the device has failed, it can be called again; else
// the next call that waits is told.
TEST_F(CallerStreams, BeginIsCalledAgainAfterAFailure) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        constexpr int kIllegalAddress = 700;
        const auto fail_operation = of_plugin<void(int64_t, int)>("simt_fail_operation");
        const auto repair = of_plugin<void()>("simt_repair_devices");
        int failures = 0;
        for (bool failed = true; failed; failures += failed ? 1 : 0) {
          Rank rank(0);
          Batch batch;
          const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
          const auto lengths =
              vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
          const auto begin = [&] {
            return begin_batch(rank.lookup(),
                               {.batch_size = kBatch, .values = &ids, .lengths = &lengths});
          };
          fail_operation(failures + 1, kIllegalAddress);
          const shardrec_status status = begin();
          failed = status != SHARDREC_OK ||
                   shardrec_collection_wait_device(rank.tables()) != SHARDREC_OK;
          fail_operation(0, kIllegalAddress);
          repair();
          const shardrec_status again = status != SHARDREC_OK ? begin() : SHARDREC_OK;
          if (again == SHARDREC_OK) continue;
          std::fprintf(stderr, "operation %d: %s\n", failures + 1, shardrec_last_error());
          std::_Exit(1);
        }
        std::fprintf(stderr, "%d failures\n", failures);
        std::_Exit(failures > 3 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "failures");
}

// A device stays broken for its process: another one finds out.
TEST_F(CallerStreams, HearOfFailuresWhenTheyWait) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Rank rank(0);
        constexpr int kIllegalAddress = 700;
        of_plugin<void(int64_t, int)>("simt_fail_operation")(1, kIllegalAddress);
        const compute::cuda::host::Stream other(0);
        const PinnedMemory anything(2);
        compute::cuda::host::table().copy(other.handle(), anything.data(), anything.data() + 1, 1);
        compute::cuda::host::table().wait_for_stream(other.handle());
        const shardrec_status status = shardrec_collection_wait_device(rank.tables());
        std::fprintf(stderr, "%s: %s\n", shardrec_status_name(status), shardrec_last_error());
        std::_Exit(status == SHARDREC_DEVICE_ERROR ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "SHARDREC_DEVICE_ERROR: CUDA could not finish .*illegal");
}

}  // namespace
}  // namespace shardrec::test
