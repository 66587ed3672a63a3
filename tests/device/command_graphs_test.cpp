// What is enqueued again and again becomes graphs, which nobody sees but by the number of calls: neither a change of
// shape, nor of memory, nor of what memory holds is missed.
#include <atomic>
#include <mutex>
#include <thread>

#include "device/held_streams.h"
#include "device/rank_on_device.h"

namespace shardrec::test {
namespace {

using compute::cuda::host::Event;
using compute::cuda::host::PinnedMemory;
using compute::cuda::host::require;
using compute::cuda::host::Stream;
using compute::cuda::host::table;

class CommandGraphs : public HeldStreamsTest {
 protected:
  static constexpr size_t kBytes = 64;

  void SetUp() override {
    HeldStreamsTest::SetUp();
    if (IsSkipped()) return;
    graph_launches_ = of_plugin<int64_t()>("simt_graph_launches");
    graphs_made_ = of_plugin<int64_t()>("simt_graphs_made");
    block_ = memory_->allocate(kBlocks * kBytes);
  }

  std::byte* at(size_t block) { return block_->data + block * kBytes; }

  // A list of two commands, and an event behind it: fills a block of the device, and copies it to the host.
  void enqueue(uint8_t byte, size_t block) {
    require(table().fill(stream_->handle(), at(block), byte, kBytes), "fill");
    stream_->copy_kept(here_.data(), at(block), kBytes);
    behind_.record(*stream_);
  }
  void expect_copied(uint8_t byte) {
    behind_.wait();
    EXPECT_EQ(std::to_integer<int>(here_.data()[0]), byte);
    EXPECT_EQ(std::to_integer<int>(here_.data()[kBytes - 1]), byte);
  }
  int64_t graphs_launched_by(uint8_t byte, size_t block) {
    const int64_t before = graph_launches_();
    enqueue(byte, block);
    expect_copied(byte);
    return graph_launches_() - before;
  }

  static constexpr size_t kBlocks = 64;
  std::unique_ptr<compute::Allocation> block_;
  PinnedMemory here_{kBytes};
  Event behind_{0};
  int64_t (*graph_launches_)() = nullptr;
  int64_t (*graphs_made_)() = nullptr;
};

TEST_F(CommandGraphs, AListThatComesAgainIsAGraph) {
  EXPECT_EQ(graphs_launched_by(1, 0), 0);
  EXPECT_EQ(graphs_launched_by(1, 0), 1);
  EXPECT_EQ(graphs_launched_by(1, 0), 1);
  EXPECT_EQ(graphs_launched_by(2, 0), 0) << "another value";
  EXPECT_EQ(graphs_launched_by(1, 1), 0) << "other memory";
  EXPECT_EQ(graphs_launched_by(1, 0), 1);
  EXPECT_EQ(graphs_launched_by(2, 0), 1);
}

TEST_F(CommandGraphs, WhatIsEnqueuedTakesPlaceWhenSomethingElseIsAsked) {
  require(table().fill(stream_->handle(), at(0), 3, kBytes), "fill");
  require(table().fill(stream_->handle(), at(1), 4, kBytes), "fill");
  // A copy of what the host may change at once comes behind it.
  stream_->copy(here_.data(), at(1), kBytes);
  stream_->wait();
  expect_copied(4);
  require(table().fill(stream_->handle(), at(1), 5, kBytes), "fill");
  // Whoever takes the stream's number enqueues behind it.
  Event event(0);
  event.record_caller(stream_->number());
  event.wait();
  caller_.copy(here_.data(), at(1), kBytes);
  caller_.wait();
  expect_copied(5);
}

// More lists in turns than there are graphs: each is what it was, and none is made again and again.
TEST_F(CommandGraphs, ManyListsInTurns) {
  const int64_t made = graphs_made_();
  for (int round = 0; round < 6; ++round) {
    for (size_t block = 0; block < kBlocks; ++block) {
      enqueue(static_cast<uint8_t>(block + 1), block);
      expect_copied(static_cast<uint8_t>(block + 1));
    }
  }
  EXPECT_GT(graphs_made_() - made, 0);
  EXPECT_LT(graphs_made_() - made, static_cast<int64_t>(kBlocks));
}

TEST_F(CommandGraphs, OnesThatAreNoLongerUsedGiveWay) {
  for (int round = 0; round < 3; ++round) {
    for (size_t block = 0; block < kBlocks; ++block) graphs_launched_by(1, block);
  }
  // As many lists as it takes until the others are of long ago.
  for (int i = 0; i < 1100; ++i) graphs_launched_by(9, 0);
  for (size_t block = 0; block < kBlocks; ++block) graphs_launched_by(2, block);
  int64_t launched = 0;
  for (size_t block = 0; block < 20; ++block) {
    graphs_launched_by(2, block);
    launched += graphs_launched_by(2, block);
  }
  EXPECT_EQ(launched, 20);
}

// Memory that a rank has shared is given back by whichever rank has read it last.
TEST_F(CommandGraphs, MemoryIsGivenBackByAnotherThread) {
  std::mutex mutex;
  std::vector<std::unique_ptr<compute::Allocation>> given;
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) {
      std::vector<std::unique_ptr<compute::Allocation>> freed;
      const std::lock_guard lock(mutex);
      std::swap(freed, given);
    }
  });
  // Each list comes twice: the second one is captured while the other thread frees, and this one allocates.
  for (int i = 0; i < 200; ++i) {
    const auto byte = static_cast<uint8_t>(i / 2);
    require(table().fill(stream_->handle(), at(1), byte, kBytes), "fill");
    {
      const std::lock_guard lock(mutex);
      given.push_back(memory_->allocate(kBytes));
    }
    enqueue(byte, 0);
    expect_copied(byte);
  }
  over = true;
  other.join();
}

TEST_F(CommandGraphs, AGraphOfADeviceThatFailsTellsOfIt) {
  const auto fail_operation = of_plugin<void(int64_t, int)>("simt_fail_operation");
  for (int i = 0; i < 3; ++i) graphs_launched_by(1, 0);
  constexpr int kIllegalAddress = 700;
  fail_operation(2, kIllegalAddress);
  EXPECT_THROW(
      {
        enqueue(1, 0);
        behind_.wait();
      },
      core::Error);
  EXPECT_THROW(enqueue(1, 0), core::Error);
  EXPECT_THROW(enqueue(2, 0), core::Error) << "it is no graph yet";
  of_plugin<void()>("simt_repair_devices")();
  EXPECT_EQ(graphs_launched_by(1, 0), 1);
}

// A call that touches nothing of the caller's on the device records no event: its operations begin all the same.
TEST_F(CommandGraphs, ACallLeavesNothingThatHasNotBegun) {
  Rank device(0);
  ASSERT_EQ(device.status(), SHARDREC_OK) << shardrec_last_error();
  const auto launches = of_plugin<int64_t()>("simt_launches");
  Batch batch;
  const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
  const auto lengths = vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
  const auto gradient = matrix_at(batch.gradient.data(), false);
  for (int i = 0; i < 3; ++i) {
    device.step(ids, lengths, matrix_at(batch.out.data(), false), gradient);
    const int64_t begun = launches();
    ASSERT_OK(shardrec_collection_wait_device(device.tables()));
    EXPECT_EQ(launches(), begun) << "they began when somebody waited";
  }
}

// Steps whose batches come again, in other memory, in other shapes, as long as graphs are launched: a rank on the CPU
// has the same rows.
TEST_F(CommandGraphs, StepsOfBatchesThatChange) {
  Rank device(0);
  Rank cpu(-1);
  ASSERT_EQ(device.status(), SHARDREC_OK) << shardrec_last_error();
  const auto step = [&](Batch& batch, Batch& scratch) {
    const auto ids = vector_at(batch.ids.data(), SHARDREC_INT64, batch.ids.size(), false);
    const auto lengths =
        vector_at(batch.lengths.data(), SHARDREC_INT32, batch.lengths.size(), false);
    const auto gradient = matrix_at(batch.gradient.data(), false);
    device.step(ids, lengths, matrix_at(batch.out.data(), false), gradient);
    cpu.step(ids, lengths, matrix_at(scratch.out.data(), false), gradient);
    EXPECT_EQ(batch.out, scratch.out);
  };
  Batch first;
  Batch scratch;
  // The same ids in bags of another shape, and fewer of them.
  Batch second = first;
  std::swap(second.lengths.front(), second.lengths.back());
  Batch third = first;
  third.ids.resize(third.ids.size() - static_cast<size_t>(third.lengths.back()));
  third.lengths.back() = 0;
  const int64_t before = graph_launches_();
  for (int i = 0; i < 12; ++i) step(first, scratch);
  EXPECT_GT(graph_launches_(), before);
  for (int i = 0; i < 24; ++i) {
    Batch& batch = i % 3 == 0 ? second : i % 3 == 1 ? third : first;
    batch.ids[static_cast<size_t>(i)] = i;
    step(batch, scratch);
  }
  EXPECT_EQ(device.rows(), cpu.rows());
}

}  // namespace
}  // namespace shardrec::test
