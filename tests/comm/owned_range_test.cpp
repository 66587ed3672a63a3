#include "comm/collective/owned_range.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace shardrec::comm {
namespace {

// The owner of each element, dealt out grain by grain: no rank has more grains than it must.
std::vector<int64_t> owners(int64_t count, int64_t ranks, int64_t grain) {
  int64_t grains_each = 0;
  while (grains_each * grain * ranks < count) ++grains_each;
  std::vector<int64_t> owner;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    for (int64_t i = 0; i < grains_each * grain; ++i) {
      if (static_cast<int64_t>(owner.size()) < count) owner.push_back(rank);
    }
  }
  return owner;
}

TEST(OwnedRange, RangesTileTheVectorInRankOrder) {
  for (const int64_t grain : {1, 8, 16, 64}) {
    for (int64_t ranks = 1; ranks <= 9; ++ranks) {
      for (int64_t count = 0; count <= 1300; count += count < 200 ? 1 : 37) {
        const std::vector<int64_t> owner = owners(count, ranks, grain);
        int64_t end = 0;
        for (int64_t rank = 0; rank < ranks; ++rank) {
          const OwnedRange range = owned_range(count, ranks, grain, rank);
          ASSERT_EQ(range.begin, end) << count << " " << ranks << " " << grain << " " << rank;
          ASSERT_GE(range.count, 0);
          end = range.begin + range.count;
          for (int64_t i = range.begin; i < end; ++i) {
            ASSERT_EQ(owner[static_cast<size_t>(i)], rank) << count << " " << ranks << " " << grain;
          }
        }
        ASSERT_EQ(end, count) << ranks << " " << grain;
      }
    }
  }
}

// Every rank computes the ranges for itself: these must stay what they are.
TEST(OwnedRange, FloatsOfCacheLinesOverThreeRanks) {
  const auto expect = [](int64_t rank, int64_t begin, int64_t count) {
    const OwnedRange range = owned_range(100, 3, 16, rank);
    EXPECT_EQ(range.begin, begin);
    EXPECT_EQ(range.count, count);
  };
  expect(0, 0, 48);
  expect(1, 48, 48);
  expect(2, 96, 4);
}

TEST(OwnedRange, RowsBeyond32BitsKeepTheirOwners) {
  const int64_t rows = (int64_t{1} << 40) + 1;
  const OwnedRange last = owned_range(rows, 4, 64, 3);
  EXPECT_EQ(last.begin, 3 * ((int64_t{1} << 38) + 64));
  EXPECT_EQ(last.begin + last.count, rows);
}

}  // namespace
}  // namespace shardrec::comm
