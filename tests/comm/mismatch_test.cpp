// How a mismatch is worded on the `local` engine; tests/conformance has the rest.
#include <gtest/gtest.h>

#include "rank.h"

namespace shardrec::comm {
namespace {

TEST(Mismatch, SizesAreNamedInAMismatch) {
  const auto group = local::make_group(2, 2);
  Rank zero(group, 0);
  Rank one(group, 1);
  post(*zero.channel, 2, {.name = "all_reduce", .size = 5});
  const auto error = error_of([&] { post(*one.channel, 2, {.name = "all_reduce", .size = 6}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->sentence(),
            "rank 0 brings 5 elements to \"all_reduce\" (exchange 0) while this rank 1 brings 6; "
            "sizes must be equal on all ranks");
  const auto other = error_of([&] { zero.comm->check(); });
  ASSERT_TRUE(other);
  EXPECT_EQ(other->sentence(),
            "rank 1 brings 6 elements to \"all_reduce\" (exchange 0) while this rank 0 brings 5; "
            "sizes must be equal on all ranks");
}

TEST(Mismatch, ChannelsOpenedInDifferentOrderAreAMismatch) {
  const auto group = local::make_group(2, 2);
  const auto zero = local::join(group, 0);
  const auto one = local::join(group, 1);
  const auto input = zero->open_channel(Purpose::kInput);
  const auto dense = one->open_channel(Purpose::kDense);
  post(*input, 2);
  const auto error = error_of([&] { post(*dense, 2); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_MISMATCH);
  EXPECT_EQ(error->parts().rank, 0);
}

}  // namespace
}  // namespace shardrec::comm
