// Buffers in the memory of a back end.
#include "compute/buffer.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace shardrec::compute {
namespace {

// The CPU's memory, until it is told that there is none left.
class LimitedMemory final : public Memory {
 public:
  shardrec_device_type device() const noexcept override { return SHARDREC_DEVICE_CUDA; }
  std::unique_ptr<Allocation> allocate(size_t bytes) override {
    if (exhausted) core::fail(SHARDREC_OUT_OF_MEMORY, "none is left");
    ++allocations;
    return cpu_memory()->allocate(bytes);
  }
  std::unique_ptr<Allocation> allocate_zeros(size_t bytes) override { return allocate(bytes); }

  int allocations = 0;
  bool exhausted = false;
};

TEST(Buffer, GrowsOnlyAndKnowsItsDevice) {
  const auto memory = std::make_shared<LimitedMemory>();
  Buffer buffer(memory);
  EXPECT_EQ(buffer.device(), SHARDREC_DEVICE_CUDA);
  EXPECT_EQ(buffer.data(), nullptr);
  std::byte* const first = buffer.resize(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0U);
  EXPECT_EQ(buffer.resize(10), first);
  EXPECT_EQ(buffer.resize(1001), first) << "there is some room to grow";
  EXPECT_EQ(memory->allocations, 1);
  EXPECT_EQ(buffer.resize_as<double>(500).size(), 500U);
  EXPECT_EQ(memory->allocations, 2);
  EXPECT_GE(buffer.capacity(), 4000U);
}

TEST(Buffer, IsEmptyWhereMemoryRanOut) {
  const auto memory = std::make_shared<LimitedMemory>();
  Buffer buffer(memory);
  buffer.resize(100);
  memory->exhausted = true;
  EXPECT_THROW(buffer.resize(100000), core::Error);
  EXPECT_EQ(buffer.data(), nullptr);
  EXPECT_EQ(buffer.capacity(), 0U);
  memory->exhausted = false;
  EXPECT_NE(buffer.resize(100), nullptr);
}

TEST(Buffer, ZerosAreZero) {
  const auto block = cpu_memory()->allocate_zeros(100000);
  ASSERT_GE(block->size, 100000U);
  for (size_t i = 0; i < 100000; ++i) ASSERT_EQ(block->data[i], std::byte{0}) << i;
}

}  // namespace
}  // namespace shardrec::compute
