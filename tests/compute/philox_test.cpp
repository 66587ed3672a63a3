#include <gtest/gtest.h>

#include "compute/math/scalar.h"

namespace {

using shardrec::compute::math::philox;
using shardrec::compute::math::philox_key;
using shardrec::compute::math::PhiloxCounter;

// The known answers that the paper's authors publish with Random123 (kat_vectors, 10 rounds).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KeyIsLowWordThenHighWord) {
  EXPECT_EQ(
      philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, philox_key(0x299f31d0a4093822)),
      (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

}  // namespace
