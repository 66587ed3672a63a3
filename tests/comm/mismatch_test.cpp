// Ranks that call different things: all of them get MISMATCH, by name, and none gets data.
#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "rank.h"

namespace shardrec::comm {
namespace {

// Three ranks, of which rank 1 does something else. What they throw.
std::vector<core::Error> mismatch(const std::function<void(Communicator&, Collectives&)>& call) {
  std::vector<core::Error> errors;
  for (const auto& error : run_ranks(3, [&](Communicator& comm) {
         Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
         collectives.barrier(kForward);
         call(comm, collectives);
         ADD_FAILURE() << "rank " << comm.rank() << " was given a mismatched exchange";
       })) {
    EXPECT_TRUE(error);
    if (!error) continue;
    EXPECT_EQ(error->status(), SHARDREC_MISMATCH) << error->sentence();
    EXPECT_EQ(error->parts().sequence, 1);
    errors.push_back(*error);
  }
  return errors;
}

TEST(Mismatch, DifferentOperationsOfOneExchangeAreAMismatchNamingBoth) {
  for (int repetition = 0; repetition < 20; ++repetition) {
    const auto errors = mismatch([](Communicator& comm, Collectives& collectives) {
      collectives.barrier(comm.rank() == 1 ? kBackward : kForward);
    });
    ASSERT_EQ(errors.size(), 3U);
    for (const auto& error : errors) {
      EXPECT_SAYS(error, "\"forward\"");
      EXPECT_SAYS(error, "\"backward\"");
    }
    // Those in "forward" are told of rank 1, rank 1 of one of them.
    EXPECT_EQ(errors[0].parts().rank, 1);
    EXPECT_EQ(errors[2].parts().rank, 1);
    EXPECT_NE(errors[1].parts().rank, 1);
    EXPECT_EQ(errors[0].parts().operation, "forward");
    EXPECT_EQ(errors[1].parts().operation, "backward");
    EXPECT_SAYS(errors[0], "rank 1 is in \"backward\" (exchange 1) while ");
    EXPECT_SAYS(errors[1], "while this rank 1 is in \"backward\"");
  }
}

TEST(Mismatch, DifferentDetailsSizesCollectivesReductionsAndRootsAreMismatches) {
  const std::function<void(int, Collectives&)> deviations[] = {
      [](int rank, Collectives& c) {
        c.barrier({.name = "step", .kind = 1, .detail = rank == 1 ? 5U : 4U});
      },
      [](int rank, Collectives& c) {
        std::vector<float> data(rank == 1 ? 6 : 5);
        c.all_reduce<float>(kForward, Reduction::kSum, data);
      },
      [](int rank, Collectives& c) {
        std::vector<float> data(rank == 1 ? 60000 : 50000);
        c.all_reduce<float>(kForward, Reduction::kSum, data);
      },
      [](int rank, Collectives& c) {
        std::vector<float> floats(4);
        std::vector<int32_t> integers(4);
        if (rank == 1) {
          c.all_reduce<int32_t>(kForward, Reduction::kSum, integers);
        } else {
          c.all_reduce<float>(kForward, Reduction::kSum, floats);
        }
      },
      [](int rank, Collectives& c) {
        std::vector<float> data(4);
        c.all_reduce<float>(kForward, rank == 1 ? Reduction::kMax : Reduction::kMin, data);
      },
      [](int rank, Collectives& c) {
        std::vector<float> data(6);
        if (rank == 1) {
          (void)c.reduce_scatter<float>(kForward, Reduction::kSum, std::span<const float>(data));
        } else {
          c.all_reduce<float>(kForward, Reduction::kSum, data);
        }
      },
      [](int rank, Collectives& c) {
        std::string data(7, 'x');
        c.broadcast(kForward, rank == 1 ? 2 : 0, std::as_writable_bytes(std::span(data)));
      },
      [](int rank, Collectives& c) {
        std::string data(rank == 1 ? 8 : 7, 'x');
        c.broadcast(kForward, 0, std::as_writable_bytes(std::span(data)));
      },
      [](int rank, Collectives& c) {
        if (rank == 1) {
          c.all_gather(kForward, {});
        } else {
          c.barrier(kForward);
        }
      },
  };
  for (const auto& deviate : deviations) {
    const auto errors = mismatch(
        [&](Communicator& comm, Collectives& collectives) { deviate(comm.rank(), collectives); });
    ASSERT_EQ(errors.size(), 3U);
    EXPECT_NE(errors[1].parts().rank, 1);
    EXPECT_TRUE(errors[1].sentence().find("this rank 1") != std::string::npos)
        << errors[1].sentence();
  }
}

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
  const auto gradient = one->open_channel(Purpose::kGradient);
  post(*input, 2);
  const auto error = error_of([&] { post(*gradient, 2); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->status(), SHARDREC_MISMATCH);
  EXPECT_EQ(error->parts().rank, 0);
}

}  // namespace
}  // namespace shardrec::comm
