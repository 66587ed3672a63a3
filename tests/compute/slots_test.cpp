// Slots of touched rows, and sums over whole rows, against plain references.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "compute/backend_tools.h"
#include "compute/gradient_operations.h"
#include "compute/slot_operations.h"

namespace shardrec::compute {
namespace {

constexpr int64_t kBegin = 128;
constexpr int64_t kRows = 150;  // two words of bits and a part of one
constexpr int64_t kWidth = 3;

// Rows of a table, ascending, with their gradients.
struct Touched {
  std::vector<int64_t> rows;
  std::vector<float> gradients;

  std::optional<float> at(int64_t row, int64_t column) const {
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == row) return gradients[i * kWidth + static_cast<size_t>(column)];
    }
    return {};
  }
};

Touched some_rows(std::mt19937& random, uint32_t one_in) {
  std::normal_distribution<float> normal;
  Touched touched;
  for (int64_t row = kBegin; row < kBegin + kRows; ++row) {
    if (random() % one_in != 0) continue;
    touched.rows.push_back(row);
    for (int64_t c = 0; c < kWidth; ++c) touched.gradients.push_back(normal(random));
  }
  return touched;
}

// A slot in memory of its own.
class Slot {
 public:
  Slot(bool bits, int64_t count)
      : shape_{.begin = kBegin, .rows = kRows, .count = count, .width = kWidth, .bits = bits},
        index_(slot_index_bytes(shape_) / sizeof(uint64_t), ~uint64_t{0}),
        gradients_(static_cast<size_t>(count * kWidth)) {}

  SlotRoom room() {
    SlotRoom room{shape_};
    room.index = std::as_writable_bytes(std::span(index_)).data();
    room.gradients = gradients_.data();
    return room;
  }
  SlotRows rows() const {
    SlotRows rows{shape_};
    rows.index = std::as_bytes(std::span(index_)).data();
    rows.gradients = gradients_.data();
    return rows;
  }
  std::vector<uint64_t>& index() { return index_; }

 private:
  SlotShape shape_;
  std::vector<uint64_t> index_;
  std::vector<float> gradients_;
};

class Slots : public ::testing::TestWithParam<bool> {
 protected:
  Slot packed(const Touched& touched) {
    Slot slot(GetParam(), std::ssize(touched.rows));
    const SlotPacking packing{touched.rows.data(), touched.gradients.data(), slot.room()};
    tools_.backend->slots().pack_slots({&packing, 1});
    return slot;
  }
  // Rows and gradients of a slot.
  Touched unpacked(const SlotRows& slot) {
    Touched out;
    out.rows.resize(static_cast<size_t>(slot.count));
    std::vector<const float*> gradients(out.rows.size());
    const SlotUnpacking table{{&slot, 1}, out.rows.data(), gradients.data()};
    tools_.backend->slots().unpack_slots({&table, 1});
    for (const float* gradient : gradients) {
      out.gradients.insert(out.gradients.end(), gradient, gradient + kWidth);
    }
    return out;
  }
  bool good(const Slot& slot) {
    const SlotRows rows = slot.rows();
    uint8_t good = 7;
    tools_.backend->slots().check_slots({&rows, 1}, {&good, 1});
    return good == 1;
  }

  BackendTools tools_;
  std::mt19937 random_{3};
};

TEST_P(Slots, ComeBackAsTheyWerePacked) {
  for (const uint32_t one_in : {1U, 2U, 40U, 100000U}) {
    const Touched touched = some_rows(random_, one_in);
    const Slot slot = packed(touched);
    EXPECT_TRUE(good(slot));
    const Touched back = unpacked(slot.rows());
    EXPECT_EQ(back.rows, touched.rows);
    EXPECT_EQ(back.gradients, touched.gradients);
  }
}

// ((0 + 1) + (2 + 3)) + 4, ranks without the row left out.
std::optional<float> tree(const std::vector<Touched>& ranks, int64_t row, int64_t column,
                          size_t first, size_t count) {
  if (first >= ranks.size()) return {};
  if (count == 1) return ranks[first].at(row, column);
  const auto left = tree(ranks, row, column, first, count / 2);
  const auto right = tree(ranks, row, column, first + count / 2, count / 2);
  if (!left) return right;
  return right ? *left + *right : *left;
}

TEST_P(Slots, AreAddedUpPairwiseOverTheRanks) {
  for (const size_t ranks : {1U, 2U, 5U, 8U}) {
    std::vector<Touched> touched;
    std::vector<Slot> slots;
    std::vector<SlotRows> addends;
    for (size_t r = 0; r < ranks; ++r) {
      touched.push_back(some_rows(random_, 2 + static_cast<uint32_t>(r)));
      slots.push_back(packed(touched.back()));
    }
    for (const Slot& slot : slots) addends.push_back(slot.rows());
    SlotSum sum{.addends = addends, .to = {}};
    sum.to.width = kWidth;
    int64_t count = -1;
    tools_.backend->slots().count_slot_sums({&sum, 1}, {&count, 1});
    Slot out(GetParam(), count);
    sum.to = out.room();
    tools_.backend->slots().add_slots({&sum, 1});
    EXPECT_TRUE(good(out));
    const Touched added = unpacked(out.rows());
    size_t i = 0;
    for (int64_t row = kBegin; row < kBegin + kRows; ++row) {
      if (!tree(touched, row, 0, 0, 8)) continue;
      ASSERT_LT(i, added.rows.size());
      EXPECT_EQ(added.rows[i++], row);
      for (int64_t c = 0; c < kWidth; ++c) {
        EXPECT_EQ(added.at(row, c), tree(touched, row, c, 0, 8)) << ranks << " ranks, row " << row;
      }
    }
    EXPECT_EQ(i, added.rows.size());
  }
}

TEST_P(Slots, ThatAreNotWhatTheySayAreNoticed) {
  const Touched touched = some_rows(random_, 4);
  Slot slot = packed(touched);
  EXPECT_TRUE(good(slot));
  const uint64_t first = slot.index()[0];
  if (GetParam()) {
    slot.index()[0] ^= 1;  // one more, or one less
    EXPECT_FALSE(good(slot));
    slot.index()[0] = first;
    const uint64_t last = slot.index()[2];
    slot.index()[2] = last & (last - 1);
    EXPECT_FALSE(good(slot));
    slot.index()[2] |= uint64_t{1} << 22;  // as many, one of them behind the slot
    EXPECT_FALSE(good(slot));
  } else {
    slot.index()[0] = first << 32 | first >> 32;  // falling
    EXPECT_FALSE(good(slot));
    slot.index()[0] = (first & 0xFFFFFFFF) << 32 | (first & 0xFFFFFFFF);  // twice
    EXPECT_FALSE(good(slot));
    slot.index()[0] = first;
    const size_t last = touched.rows.size() - 1;
    slot.index()[last / 2] = last % 2 == 0 ? uint64_t{kRows}
                                           : (slot.index()[last / 2] & 0xFFFFFFFF) |
                                                 uint64_t{kRows} << 32;  // behind the slot
    EXPECT_FALSE(good(slot));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Slots, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "bits" : "list"; });

TEST(RowSearches, CountTheRowsBelowEachBound) {
  const BackendTools tools;
  const std::vector<int64_t> rows = {2, 3, 7, 64, 100};
  const std::vector<int64_t> bounds = {0, 3, 4, 101, 64};
  std::vector<int64_t> before(bounds.size(), -1);
  int64_t of_none = -1;
  const RowSearch searches[] = {
      {rows.data(), std::ssize(rows), bounds, before.data()},
      {nullptr, 0, std::span(bounds).first(1), &of_none},
  };
  tools.backend->slots().find_rows(searches);
  EXPECT_EQ(before, (std::vector<int64_t>{0, 1, 2, 5, 3}));
  EXPECT_EQ(of_none, 0);
}

TEST(SingleOccurrences, AreNumbered) {
  const BackendTools tools;
  std::vector<int64_t> run(4, -1);
  std::vector<uint32_t> bags(3, 9);
  std::vector<uint32_t> blocks(3, 9);
  tools.backend->gradients().number_occurrences({3, run.data(), bags.data(), blocks.data()});
  EXPECT_EQ(run, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(bags, (std::vector<uint32_t>{0, 1, 2}));
  EXPECT_EQ(blocks, (std::vector<uint32_t>{0, 0, 0}));
}

// Rows [0, 10000), of which the second addend, with a gap between its rows, has [3000, 9001).
TEST(RowTotals, AreSumsInTheOrderOfTheAddends) {
  constexpr int64_t kTotals = 10000;
  constexpr int64_t kFirst = 3000;
  constexpr int64_t kLast = 9001;
  const BackendTools tools(3);
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> sums[3];
  sums[0].resize(2 * kTotals);
  sums[1].resize(5 * (kLast - kFirst));
  sums[2].resize(2 * kTotals);
  for (std::vector<float>& values : sums) {
    for (float& x : values) x = normal(random);
  }
  const RowAddend addends[] = {{sums[0].data(), 2, 0, kTotals},
                               {sums[1].data(), 5, kFirst, kLast},
                               {sums[2].data(), 2, 0, kTotals}};
  std::vector<float> out(2 * kTotals, 99);
  const RowTotals totals{.rows = kTotals, .values = 2, .addends = addends, .out = out.data()};
  tools.backend->slots().add_row_totals({&totals, 1});
  for (size_t row = 0; row < kTotals; ++row) {
    for (size_t k = 0; k < 2; ++k) {
      float expected = 0.0F + sums[0][2 * row + k];
      if (row >= kFirst && row < kLast) expected += sums[1][5 * (row - kFirst) + k];
      expected += sums[2][2 * row + k];
      ASSERT_EQ(out[2 * row + k], expected) << row;
    }
  }
}

}  // namespace
}  // namespace shardrec::compute
