#include "core/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/error.h"

namespace shardrec::core {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

bool aligned_to(const void* memory, size_t alignment) {
  return std::bit_cast<uintptr_t>(memory) % alignment == 0;
}

size_t resident_pages(const std::byte* memory, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> resident((bytes + page - 1) / page);
  EXPECT_EQ(mincore(const_cast<std::byte*>(memory), bytes, resident.data()), 0);
  return static_cast<size_t>(std::count_if(resident.begin(), resident.end(),
                                           [](unsigned char r) { return (r & 1) != 0; }));
}

TEST(Pages, AreZeroAndAlignedAtEverySize) {
  for (const size_t bytes : {size_t{1}, size_t{4095}, size_t{4096}, size_t{5000}, kHugePage - 1,
                             kHugePage, kHugePage + 1, 3 * kHugePage + 12345}) {
    Pages pages(bytes);
    ASSERT_NE(pages.data(), nullptr);
    EXPECT_EQ(pages.size(), bytes);
    const size_t alignment = bytes >= kHugePage ? kHugePage : bytes >= 4096 ? 4096 : 64;
    EXPECT_TRUE(aligned_to(pages.data(), alignment)) << bytes;
    EXPECT_TRUE(std::all_of(pages.data(), pages.data() + bytes,
                            [](std::byte b) { return b == std::byte{0}; }));
    std::fill_n(pages.data(), bytes, std::byte{1});
  }
}

TEST(Pages, CostNothingUntilTouched) {
  constexpr size_t kBytes = size_t{1} << 36;  // more than the machine has
  Pages pages(kBytes);
  EXPECT_EQ(resident_pages(pages.data(), size_t{1} << 30), 0U);
  pages.data()[kBytes - 1] = std::byte{7};
  EXPECT_EQ(resident_pages(pages.data(), size_t{1} << 30), 0U);
  EXPECT_EQ(pages.data()[kBytes - 1], std::byte{7});
}

TEST(Pages, NothingIsMappedForNoBytes) {
  const Pages pages(0);
  EXPECT_EQ(pages.data(), nullptr);
  EXPECT_EQ(pages.size(), 0U);
}

TEST(Pages, ImpossibleSizeIsOutOfMemoryWithTheSize) {
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - kHugePage, SIZE_MAX / 2}) {
    try {
      const Pages pages(bytes);
      ADD_FAILURE() << "mapped " << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_OUT_OF_MEMORY);
      EXPECT_NE(error.sentence().find(std::to_string(bytes)), std::string::npos)
          << error.sentence();
    }
  }
}

TEST(Pages, MoveHandsOverTheMapping) {
  Pages first(10000);
  first.data()[9999] = std::byte{5};
  const std::byte* data = first.data();
  Pages second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.size(), 10000U);
  Pages third(1);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.data()[9999], std::byte{5});
}

TEST(Scratch, GrowsOnlyAndStaysAligned) {
  Scratch scratch;
  EXPECT_EQ(scratch.capacity(), 0U);
  const std::byte* last = nullptr;
  size_t most = 0;
  for (const size_t bytes : {size_t{1}, size_t{64}, size_t{65}, size_t{1000}, size_t{10},
                             size_t{1000}, size_t{100000}}) {
    std::byte* data = scratch.resize(bytes);
    EXPECT_TRUE(aligned_to(data, 64));
    EXPECT_EQ(data, scratch.data());
    EXPECT_GE(scratch.capacity(), std::max(bytes, most));
    if (bytes <= most) {
      EXPECT_EQ(data, last) << "no new memory for less than there was";
    }
    std::fill_n(data, bytes, std::byte{1});
    last = data;
    most = scratch.capacity();
  }
}

TEST(Scratch, TypedSpanHasTheCountAskedFor) {
  Scratch scratch;
  const std::span<double> numbers = scratch.resize_as<double>(33);
  EXPECT_EQ(numbers.size(), 33U);
  EXPECT_GE(scratch.capacity(), 33 * sizeof(double));
}

TEST(Scratch, ImpossibleSizeIsOutOfMemoryAndTheScratchStaysUsable) {
  Scratch scratch;
  scratch.resize(100);
  EXPECT_THROW(scratch.resize(SIZE_MAX), Error);
  EXPECT_THROW(scratch.resize(SIZE_MAX / 2 + 1), Error);
  std::fill_n(scratch.resize(200), 200, std::byte{1});
}

}  // namespace
}  // namespace shardrec::core
