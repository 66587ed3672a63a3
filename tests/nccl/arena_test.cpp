// The tests' NCCL keeps what was sent, and no more: gaps are taken again.
#include "fake/arena.h"

#include <gtest/gtest.h>

#include <array>

namespace shardrec::test {
namespace {

TEST(NcclArena, GivesTheFirstGapThatIsLargeEnough) {
  fake_nccl::Arena arena(100);
  std::array<bool, 5> over{};
  const auto reserve = [&](size_t index, size_t bytes) {
    uint64_t offset = 0;
    const bool got = arena.reserve(bytes, [&over, index] { return over[index]; }, offset);
    return got ? static_cast<int>(offset) : -1;
  };
  EXPECT_EQ(reserve(0, 40), 0);
  EXPECT_EQ(reserve(1, 30), 40);
  EXPECT_EQ(reserve(2, 40), -1);
  EXPECT_EQ(reserve(2, 30), 70);
  EXPECT_EQ(reserve(3, 1), -1);
  over[1] = true;
  EXPECT_EQ(reserve(3, 31), -1);
  EXPECT_EQ(reserve(3, 10), 40);
  EXPECT_EQ(reserve(4, 20), 50);
  over.fill(true);
  EXPECT_EQ(reserve(0, 100), 0);
  EXPECT_EQ(reserve(1, 101), -1);
}

}  // namespace
}  // namespace shardrec::test
