// Rows between the memory of the CPU's back end and the host's, against plain loops.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <tuple>
#include <vector>

#include "compute/backend.h"
#include "compute/cpu/backend.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/transfer_operations.h"
#include "half_reference.h"

namespace shardrec::compute {
namespace {

// Rows of elements with gaps between them, all of them small whole numbers, which every type has.
class Rows {
 public:
  Rows(Element element, int64_t rows, size_t stride, std::mt19937& random)
      : element_(element), stride_(stride), bytes_(static_cast<size_t>(rows) * stride * 4) {
    std::vector<float> numbers(static_cast<size_t>(rows) * stride);
    for (float& x : numbers) x = static_cast<float>(random() % 257) - 128;
    if (element == Element::kFloat32) {
      std::memcpy(bytes_.data(), numbers.data(), numbers.size() * sizeof(float));
    } else {
      cpu_kernels().narrow(numbers.data(), element, bytes_.data(),
                           static_cast<int64_t>(numbers.size()));
    }
  }

  double at(int64_t row, int64_t column) const {
    const size_t i = static_cast<size_t>(row) * stride_ + static_cast<size_t>(column);
    if (element_ == Element::kFloat32) {
      float x = 0;
      std::memcpy(&x, bytes_.data() + i * sizeof x, sizeof x);
      return x;
    }
    uint16_t half = 0;
    std::memcpy(&half, bytes_.data() + i * sizeof half, sizeof half);
    return half_value(element_, half);
  }
  // From column `column` on.
  RowSource source(size_t column, const int64_t* numbers) const {
    return {bytes_.data() + column * element_bytes(element_), element_, stride_, numbers};
  }
  RowTarget target(size_t column, const int64_t* numbers) {
    return {bytes_.data() + column * element_bytes(element_), element_, stride_, numbers};
  }
  bool operator==(const Rows& other) const { return bytes_ == other.bytes_; }

 private:
  Element element_;
  size_t stride_;
  std::vector<std::byte> bytes_;
};

class Transfers : public ::testing::TestWithParam<int> {
 protected:
  std::mt19937 random_{11};
  core::Threads threads_{GetParam()};
  std::unique_ptr<Backend> backend_ = make_cpu_backend(cpu_kernels(), threads_);
};

constexpr Element kElementsOfRows[] = {Element::kFloat32, Element::kFloat16, Element::kBfloat16};

// Columns 2 to 6 to columns 1 to 5, every element beside them as before; with rows side by side,
// and of more elements than a task moves.
TEST_P(Transfers, MoveColumnsAndLeaveTheOthers) {
  for (const auto& [rows, width, gap] :
       {std::tuple<int64_t, int64_t, size_t>{5, 5, 3}, {40000, 5, 0}, {3, 1, 2}}) {
    for (const Element element : kElementsOfRows) {
      for (const Element host_element : {element, Element::kFloat32}) {
        for (const bool back : {false, true}) {
          const size_t first = gap == 0 ? 0 : 1;
          const size_t stride = static_cast<size_t>(width) + gap;
          const Rows from(back ? host_element : element, rows, stride, random_);
          Rows to(back ? element : host_element, rows, stride, random_);
          const Rows before = to;
          const RowTransfer transfer{.from = from.source(gap == 0 ? 0 : 2, nullptr),
                                     .to = to.target(first, nullptr),
                                     .rows = rows,
                                     .width = width};
          if (back) {
            backend_->transfer().copy_from_host({&transfer, 1});
          } else {
            backend_->transfer().copy_to_host({&transfer, 1});
          }
          for (int64_t row = 0; row < rows; ++row) {
            for (int64_t c = 0; c < static_cast<int64_t>(stride); ++c) {
              const int64_t moved = c - static_cast<int64_t>(first);
              const bool inside = moved >= 0 && moved < width;
              ASSERT_EQ(to.at(row, c),
                        inside ? from.at(row, moved + (gap == 0 ? 0 : 2)) : before.at(row, c))
                  << "row " << row << ", column " << c;
            }
          }
        }
      }
    }
  }
}

TEST_P(Transfers, FollowNumbersOnBothSides) {
  const std::vector<int64_t> taken = {7, 0, 7, 3};
  const std::vector<int64_t> given = {2, 5, 2, 0};  // row 2 gets the last of its two
  const Rows from(Element::kBfloat16, 8, 4, random_);
  Rows to(Element::kFloat32, 6, 4, random_);
  const Rows before = to;
  const RowTransfer transfer{.from = from.source(0, taken.data()),
                             .to = to.target(0, given.data()),
                             .rows = 4,
                             .width = 4};
  backend_->transfer().convert_on_host({&transfer, 1});
  const int64_t expected[] = {3, -1, 7, -1, -1, 0};
  for (int64_t row = 0; row < 6; ++row) {
    for (int64_t c = 0; c < 4; ++c) {
      EXPECT_EQ(to.at(row, c), expected[row] < 0 ? before.at(row, c) : from.at(expected[row], c))
          << row;
    }
  }
}

// However many threads there are.
TEST_P(Transfers, GiveARowTheLastOfManyThatAreMovedThere) {
  constexpr int64_t kRows = 400001;
  const Rows from(Element::kFloat32, kRows, 1, random_);
  Rows to(Element::kFloat32, 2, 1, random_);
  std::vector<int64_t> numbers(kRows);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i % 2);
  const RowTransfer transfer{.from = from.source(0, nullptr),
                             .to = to.target(0, numbers.data()),
                             .rows = kRows,
                             .width = 1};
  backend_->transfer().copy_from_host({&transfer, 1});
  EXPECT_EQ(to.at(0, 0), from.at(kRows - 1, 0));
  EXPECT_EQ(to.at(1, 0), from.at(kRows - 2, 0));
}

TEST_P(Transfers, SpreadOneElementOverItsColumns) {
  const Rows from(Element::kFloat32, 9, 2, random_);
  Rows to(Element::kFloat32, 9, 7, random_);
  const RowTransfer transfer{.from = from.source(1, nullptr),
                             .to = to.target(3, nullptr),
                             .rows = 9,
                             .width = 4,
                             .spread = true};
  backend_->transfer().convert_on_host({&transfer, 1});
  for (int64_t row = 0; row < 9; ++row) {
    for (int64_t c = 3; c < 7; ++c) EXPECT_EQ(to.at(row, c), from.at(row, 1));
  }
}

TEST(TransferSizes, AreCutBelowTheirMostBytes) {
  EXPECT_EQ(rows_at_once(4), int64_t{1} << 20);
  EXPECT_EQ(rows_at_once(kMostTransferred), 1);
  EXPECT_EQ(rows_at_once(kMostTransferred / 2 + 1), 1);
  EXPECT_EQ(rows_at_once(kMostTransferred * 3), 1);
}

INSTANTIATE_TEST_SUITE_P(Threads, Transfers, ::testing::Values(1, 3));

}  // namespace
}  // namespace shardrec::compute
