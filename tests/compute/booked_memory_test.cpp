// Booked memory counts its blocks that are in use, and nothing else.
#include "compute/booked_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace shardrec::compute {
namespace {

TEST(BookedMemory, CountsBlocksUntilTheyAreFreed) {
  const auto booked = std::make_shared<std::atomic<int64_t>>(0);
  std::shared_ptr<Memory> memory = book(cpu_memory(), booked);
  Buffer buffer(memory);
  EXPECT_EQ(booked->load(), 0);
  std::memset(buffer.resize(1000), 1, 1000);
  EXPECT_EQ(booked->load(), static_cast<int64_t>(buffer.capacity()));
  EXPECT_GE(booked->load(), 1000);
  buffer.resize(100000);
  EXPECT_EQ(booked->load(), static_cast<int64_t>(buffer.capacity()));
  {
    const auto block = memory->allocate(77);
    EXPECT_EQ(booked->load(), static_cast<int64_t>(buffer.capacity() + block->size));
  }
  auto last = memory->allocate(5);
  buffer = Buffer(memory);
  memory.reset();
  EXPECT_EQ(booked->load(), static_cast<int64_t>(last->size)) << "blocks outlive their memory";
  last.reset();
  EXPECT_EQ(booked->load(), 0);
}

TEST(BookedMemory, LeavesTablesOut) {
  const auto booked = std::make_shared<std::atomic<int64_t>>(0);
  const auto memory = book(cpu_memory(), booked);
  const auto table = memory->allocate_zeros(1 << 20);
  EXPECT_EQ(booked->load(), 0);
  EXPECT_EQ(memory->device(), SHARDREC_DEVICE_CPU);
  EXPECT_EQ(book(cpu_memory(), nullptr), cpu_memory()) << "nobody counts";
}

}  // namespace
}  // namespace shardrec::compute
