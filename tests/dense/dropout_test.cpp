// Dropout: what it drops, when, and that backward drops the same.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "compute/cpu/kernels/dispatch.h"
#include "core/error.h"
#include "dense/layer_reference.h"
#include "dense/layer_stacks.h"

namespace shardrec::dense {
namespace {

using test::Rows;
using test::same_bits;

constexpr int64_t kRows = 900;
constexpr int64_t kCols = 257;

// A stack of one dropout layer, and a batch without zeros.
struct Alone {
  explicit Alone(double rate, uint64_t seed = 7) : mlp(kCols, {.seed = seed, .threads = 2}) {
    mlp.add(test::dropout(rate));
    std::mt19937 random(1);
    input.fill(random);
    dy.fill(random);
    for (Rows* rows : {&input, &dy}) {
      for (int64_t r = 0; r < kRows; ++r) rows->at(r, r % kCols) = 1;
    }
  }
  std::vector<float> forward() {
    mlp.forward(input.view(), output.view());
    return output.values();
  }
  Mlp mlp;
  Rows input{kRows, kCols}, output{kRows, kCols}, dy{kRows, kCols}, dx{kRows, kCols};
};

TEST(Dropout, TheShareOfZerosIsTheRateAndTheRestIsScaled) {
  for (const double rate : {0.0, 0.1, 0.5, 0.9375}) {
    Alone alone(rate);
    alone.forward();
    const auto factor = static_cast<float>(1 / (1 - rate));
    int64_t zeros = 0;
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kCols; ++c) {
        const float y = alone.output.at(r, c);
        zeros += y == 0 ? 1 : 0;
        ASSERT_EQ(y, y == 0 ? 0 : alone.input.at(r, c) * factor);
      }
    }
    constexpr double kElements = kRows * kCols;
    EXPECT_NEAR(static_cast<double>(zeros) / kElements, rate,
                4 * std::sqrt(rate * (1 - rate) / kElements))
        << rate;
  }
}

TEST(Dropout, BackwardDropsWhatForwardDropped) {
  Alone alone(0.4);
  for (int step = 0; step < 3; ++step) {
    alone.forward();
    alone.mlp.backward(alone.dy.view(), alone.dx.view());
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t c = 0; c < kCols; ++c) {
        ASSERT_EQ(alone.output.at(r, c) == 0, alone.dx.at(r, c) == 0)
            << step << " " << r << " " << c;
      }
    }
  }
}

TEST(Dropout, SeedsLayersAndForwardsDropDifferentElements) {
  Alone alone(0.5), other(0.5, 8);
  const std::vector<float> first = alone.forward();
  EXPECT_FALSE(same_bits(first, alone.forward())) << "the next forward";
  EXPECT_FALSE(same_bits(first, other.forward())) << "another seed";
  EXPECT_EQ(alone.mlp.dropout_forwards(), 2);
  alone.mlp.set_dropout_forwards(0);
  EXPECT_TRUE(same_bits(first, alone.forward())) << "the same forward";
  alone.mlp.set_dropout_forwards(int64_t{1} << 32);
  EXPECT_TRUE(same_bits(first, alone.forward())) << "the number counts mod 2^32";

  // What the second layer drops of what the first one left: half of it, not all or none.
  Mlp two(kCols, {.seed = 7});
  two.add(test::dropout(0.5));
  two.add(test::dropout(0.5));
  two.forward(alone.input.view(), alone.output.view());
  int64_t kept = 0;
  for (const float y : alone.output.values()) kept += y != 0 ? 1 : 0;
  EXPECT_NEAR(static_cast<double>(kept) / (kRows * kCols), 0.25, 0.01);
}

TEST(Dropout, EvaluationGivesTheInputAndIsNotCounted) {
  Alone alone(0.5);
  alone.mlp.set_training(false);
  EXPECT_TRUE(same_bits(alone.forward(), alone.input.values()));
  alone.mlp.set_training(true);
  alone.mlp.backward(alone.dy.view(), alone.dx.view());
  EXPECT_TRUE(same_bits(alone.dx.values(), alone.dy.values())) << "backward is of that forward";
  EXPECT_EQ(alone.mlp.dropout_forwards(), 0);

  Alone plain(0.5);
  EXPECT_TRUE(same_bits(alone.forward(), plain.forward())) << "training goes on as without it";
  alone.mlp.set_training(false);
  alone.mlp.backward(alone.dy.view(), alone.dx.view());
  plain.mlp.backward(plain.dy.view(), plain.dx.view());
  EXPECT_TRUE(same_bits(alone.dx.values(), plain.dx.values()));
}

TEST(Dropout, AForwardThatIsRefusedIsNotCounted) {
  Alone alone(0.5);
  Rows wrong(kRows, kCols + 1);
  EXPECT_THROW(alone.mlp.forward(alone.input.view(), wrong.view()), core::Error);
  EXPECT_EQ(alone.mlp.dropout_forwards(), 0);
}

// Positions whose quads fill more than 32 bits, in all instruction sets.
TEST(Dropout, WordsAreThoseOfThePositionAlsoBeyond32Bits) {
  constexpr int64_t kWidth = 7;
  const DropoutMask mask{
      .seed = 0x123456789abcdef, .layer = 3, .forward = 9, .threshold = 1u << 31, .factor = 2};
  for (const int64_t first : {int64_t{0}, (int64_t{1} << 34) / kWidth - 3, int64_t{1} << 40}) {
    for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
      compute::force_cpu_kernels(&compute::cpu_kernels_at(set));
      Rows x(20, kWidth), y(20, kWidth, 2);
      for (int64_t r = 0; r < 20; ++r) {
        for (int64_t c = 0; c < kWidth; ++c) x.at(r, c) = 3;
      }
      kernels().dropout(mask, first, x.view(), y.view());
      const test::Dropped dropped{mask.seed, mask.layer, mask.forward, 0.5};
      for (int64_t r = 0; r < 20; ++r) {
        for (int64_t c = 0; c < kWidth; ++c) {
          const auto position = static_cast<uint64_t>((first + r) * kWidth + c);
          ASSERT_EQ(y.at(r, c), dropped(position) ? 0 : 6) << kernels().name << " " << position;
        }
      }
      EXPECT_TRUE(y.gaps_untouched());
    }
    compute::force_cpu_kernels(nullptr);
  }
}

}  // namespace
}  // namespace shardrec::dense
