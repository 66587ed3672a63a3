// The back end for tests keeps what it promises: else what passes on it proves nothing.
#include <gtest/gtest.h>

#include <stdexcept>

#include "compute/backend.h"
#include "guarded/memory.h"
#include "guarded/stream.h"

namespace shardrec::test {
namespace {

TEST(GuardedMemory, EndsTheProcessThatReadsIt) {
  const auto memory = std::make_shared<GuardedMemory>();
  compute::Buffer buffer(memory);
  volatile std::byte* data = buffer.resize(100);
  const auto read = [&] { [[maybe_unused]] const std::byte value = data[7]; };
  EXPECT_DEATH(read(), "");
  memory->open();
  data[7] = std::byte{1};
  read();
  memory->close();
  EXPECT_DEATH(read(), "");
  memory->open();
  EXPECT_TRUE(data[7] == std::byte{1});
}

TEST(GuardedMemory, EndsTheProcessThatWroteBehindABlock) {
  const auto memory = std::make_shared<GuardedMemory>();
  memory->open();
  const auto block = memory->allocate_zeros(128);
  block->data[127] = std::byte{1};
  memory->close();
  memory->open();
  EXPECT_EQ(block->data[127], std::byte{1});
  block->data[128] = std::byte{1};
  EXPECT_DEATH(memory->close(), "behind a block of 128 bytes");
  block->data[128] = std::byte{0xA5};
}

TEST(GuardedStream, RunsNothingBeforeSomebodyWaits) {
  const auto memory = std::make_shared<GuardedMemory>();
  compute::Buffer buffer(memory);
  std::byte* data = buffer.resize(64);
  Stream stream(memory);
  std::thread::id ran_on;
  stream.later([&] { ran_on = std::this_thread::get_id(); });
  stream.later([&] { data[0] = std::byte{5}; });
  std::byte read{};
  stream.later([&] { read = data[0]; });
  EXPECT_EQ(ran_on, std::thread::id());
  stream.wait();
  EXPECT_EQ(read, std::byte{5});
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(GuardedStream, StopsAtWhatAnOperationThrowsAndGoesOnAfterIt) {
  Stream stream(std::make_shared<GuardedMemory>());
  int ran = 0;
  stream.later([&] { ++ran; });
  stream.later([] { throw std::runtime_error("no room"); });
  stream.later([&] { ++ran; });
  stream.finish();
  EXPECT_THROW(stream.wait(), std::runtime_error);
  EXPECT_EQ(ran, 1);
  stream.later([&] { ++ran; });
  stream.wait();
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace shardrec::test
