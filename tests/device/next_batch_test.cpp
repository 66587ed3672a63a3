// Two lookups of a rank that is alone: the next batch begins while the device is in the step of the batch before, and
// nobody waits for it before forward, wherever its tensors lie. Those of the host have been read when begin returns.
#include <cstring>
#include <memory>

#include "compute/cuda/host/stream.h"
#include "device/held_streams.h"
#include "device/rank_on_device.h"
#include "shardrec/native.h"

namespace shardrec::test {
namespace {

using compute::cuda::host::PinnedMemory;

class NextBatch : public HeldStreamsTest {
 protected:
  // Tensors of a batch on the device.
  struct There {
    There(NextBatch& test, const Batch& batch)
        : ids_(test, batch.ids.data(), batch.ids.size() * sizeof(int64_t)),
          lengths_(test, batch.lengths.data(), batch.lengths.size() * sizeof(int32_t)),
          out_(test, batch.out.data(), batch.out.size() * sizeof(float)),
          gradient_(test, batch.gradient.data(), batch.gradient.size() * sizeof(float)),
          ids(vector_at(ids_.data(), SHARDREC_INT64, batch.ids.size(), true)),
          lengths(vector_at(lengths_.data(), SHARDREC_INT32, batch.lengths.size(), true)),
          out(matrix_at(out_.data(), true)),
          gradient(matrix_at(gradient_.data(), true)) {}

   private:
    Array ids_, lengths_, out_, gradient_;

   public:
    const shardrec_tensor ids, lengths, out, gradient;
  };

  void SetUp() override {
    HeldStreamsTest::SetUp();
    if (IsSkipped()) return;
    rank_ = std::make_unique<Rank>(0);
    ASSERT_EQ(rank_->status(), SHARDREC_OK) << shardrec_last_error();
    ASSERT_OK(shardrec_lookup_create(rank_->tables(), nullptr, &next_));
    there_ = std::make_unique<There>(*this, batch_);
    for (int step = 0; step < 4; ++step) {  // buffers have grown
      for (shardrec_lookup* const lookup : {rank_->lookup(), next_}) {
        begin(lookup, there_->ids, there_->lengths);
        finish(lookup);
      }
    }
    ASSERT_OK(shardrec_collection_wait_device(rank_->tables()));
    ASSERT_OK(shardrec_lookup_set_stream(rank_->lookup(), caller_.number()));
    ASSERT_OK(shardrec_lookup_set_stream(next_, others_.number()));
  }
  void TearDown() override {
    HeldStreamsTest::TearDown();
    shardrec_lookup_destroy(&next_);
  }

  static void begin(shardrec_lookup* lookup, const shardrec_tensor& ids,
                    const shardrec_tensor& lengths) {
    ASSERT_OK(begin_batch(lookup, {.batch_size = kBatch, .values = &ids, .lengths = &lengths}));
  }
  void finish(shardrec_lookup* lookup) {
    ASSERT_OK(shardrec_lookup_forward(lookup, 0, &there_->out));
    ASSERT_OK(shardrec_lookup_set_gradient(lookup, 0, &there_->gradient));
    ASSERT_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_APPLY));
  }

  // A step of the first lookup, whose gradients the caller's stream has not come to.
  void hold_a_step() {
    begin(rank_->lookup(), there_->ids, there_->lengths);
    ASSERT_OK(shardrec_lookup_forward(rank_->lookup(), 0, &there_->out));
    hold();
    EXPECT_TRUE(returns_while_held([&] {
      ASSERT_OK(shardrec_lookup_set_gradient(rank_->lookup(), 0, &there_->gradient));
      ASSERT_OK(shardrec_lookup_backward(rank_->lookup(), SHARDREC_UPDATE_APPLY));
    })) << "backward";
  }

  const Batch batch_;
  compute::cuda::host::Stream others_{0};
  std::unique_ptr<Rank> rank_;
  shardrec_lookup* next_ = nullptr;
  std::unique_ptr<There> there_;
};

TEST_F(NextBatch, OnTheDeviceBeginsWhileTheStepBeforeIsHeld) {
  const There other(*this, batch_);
  hold_a_step();
  EXPECT_TRUE(returns_while_held([&] { begin(next_, other.ids, other.lengths); }));
  // Forward asks whether the batch is good.
  EXPECT_TRUE(go_on_during([&] { finish(next_); }));
}

TEST_F(NextBatch, OfTheHostBeginsWhileTheStepBeforeIsHeldAndHasBeenRead) {
  Batch batch = batch_;
  const auto begin_host = [&] {
    begin(next_, vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false),
          vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false));
  };
  begin_host();
  finish(next_);
  ASSERT_OK(shardrec_collection_wait_device(rank_->tables()));
  hold_a_step();
  EXPECT_TRUE(returns_while_held(begin_host));
  std::fill(batch.ids.begin(), batch.ids.end(), int64_t{-1});
  std::fill(batch.lengths.begin(), batch.lengths.end(), -1);
  EXPECT_TRUE(go_on_during([&] { finish(next_); }));
}

TEST_F(NextBatch, InPinnedMemoryBeginsWhileTheStepBeforeIsHeldAndHasBeenRead) {
  PinnedMemory ids(batch_.ids.size() * sizeof(int64_t));
  PinnedMemory lengths(batch_.lengths.size() * sizeof(int32_t));
  std::memcpy(ids.data(), batch_.ids.data(), ids.size());
  std::memcpy(lengths.data(), batch_.lengths.data(), lengths.size());
  hold_a_step();
  EXPECT_TRUE(returns_while_held([&] {
    begin(next_, vector_at(ids.data(), SHARDREC_INT64, batch_.ids.size(), false),
          vector_at(lengths.data(), SHARDREC_INT32, batch_.lengths.size(), false));
  }));
  std::memset(ids.data(), 0xFF, ids.size());
  EXPECT_TRUE(go_on_during([&] { finish(next_); }));
}

}  // namespace
}  // namespace shardrec::test
