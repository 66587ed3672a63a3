// Bits of rows that have changed, against sets of rows.
#include "compute/row_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/threads.h"

namespace shardrec::compute {
namespace {

// Ascending, of [0, of_rows).
std::vector<int64_t> some_rows(int64_t of_rows, uint64_t one_in, std::mt19937_64& random) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < of_rows; ++row) {
    if (random() % one_in == 0) rows.push_back(row);
  }
  return rows;
}

std::vector<RowWord> bits_of(const std::vector<int64_t>& rows, int64_t of_rows) {
  std::vector<RowWord> bits(row_words(of_rows), 0);
  for (const int64_t row : rows) {
    bits[static_cast<size_t>(row / 32)] |= RowWord{1} << static_cast<uint32_t>(row % 32);
  }
  return bits;
}

// Neighbouring ranges, down to a few rows long, share words, which threads set at once.
TEST(RowBits, OfNeighbouringRangesAreAllSetWhateverThreadsSetThem) {
  constexpr int64_t kRows = 20'011;
  core::Threads threads(4);
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    const auto rows = some_rows(kRows, 1 + static_cast<uint64_t>(round % 4), random);
    std::vector<RowWord> bits(row_words(kRows), 0);
    const int64_t grain = 1 + round % 70;
    threads.parallel_for(std::ssize(rows), grain, [&](int64_t begin, int64_t end) {
      set_row_bits(bits.data(), rows.data() + begin, end - begin);
    });
    ASSERT_EQ(bits, bits_of(rows, kRows)) << "ranges of " << grain;
    ASSERT_EQ(count_row_bits(bits), std::ssize(rows));
  }
}

TEST(RowBits, OfNoRowsAreLeftAsTheyAre) {
  RowWord bits = 5;
  set_row_bits(&bits, nullptr, 0);
  EXPECT_EQ(bits, 5U);
}

TEST(RowBits, AreListedFromAnyRowOnAsFarAsThereIsRoom) {
  constexpr int64_t kRows = 331;
  std::mt19937_64 random(2);
  for (const uint64_t one_in : {1, 3, 40}) {
    const auto rows = some_rows(kRows, one_in, random);
    const auto bits = bits_of(rows, kRows);
    for (int64_t from = 0; from < kRows; ++from) {
      const auto first = std::lower_bound(rows.begin(), rows.end(), from);
      for (const size_t room : {size_t{0}, size_t{1}, size_t{7}, size_t{1000}}) {
        const size_t most = std::min(room, static_cast<size_t>(rows.end() - first));
        std::vector<int64_t> listed(room, -1);
        ASSERT_EQ(list_row_bits(bits, from, listed), most) << from;
        ASSERT_TRUE(
            std::equal(listed.begin(), listed.begin() + static_cast<ptrdiff_t>(most), first));
      }
    }
  }
}

}  // namespace
}  // namespace shardrec::compute
