// Ranks that call different things: all of them get MISMATCH, by name, and none gets data.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "conformance/engine.h"

namespace shardrec::comm {
namespace {

constexpr Operation kForward{.name = "forward", .kind = 1};
constexpr Operation kBackward{.name = "backward", .kind = 2};

#define EXPECT_SAYS(error, text) \
  EXPECT_NE((error).sentence().find(text), std::string::npos) << (error).sentence()

// Three ranks, of which rank 1 does something else. What they throw.
std::map<int, core::Error> mismatch(const Engine& engine,
                                    const std::function<void(Communicator&, Collectives&)>& call) {
  std::map<int, core::Error> errors;
  for (const auto& [rank, error] : run(engine, 3, [&](Communicator& comm) {
         Collectives collectives(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
         collectives.barrier(kForward);
         call(comm, collectives);
         ADD_FAILURE() << "rank " << comm.rank() << " was given a mismatched exchange";
       })) {
    EXPECT_TRUE(error);
    if (!error) continue;
    EXPECT_EQ(error->status(), SHARDREC_MISMATCH) << error->sentence();
    // A third party may learn of it while it is on its way out of the exchange before.
    EXPECT_LE(error->parts().sequence, 1);
    errors.emplace(rank, *error);
  }
  return errors;
}

TEST_P(FailureConformance, DifferentOperationsOfOneExchangeAreAMismatchNamingBoth) {
  for (int repetition = 0; repetition < 20; ++repetition) {
    const auto errors = mismatch(engine(), [](Communicator& comm, Collectives& collectives) {
      collectives.barrier(comm.rank() == 1 ? kBackward : kForward);
    });
    for (const auto& [rank, error] : errors) {
      EXPECT_SAYS(error, "\"forward\"");
      EXPECT_SAYS(error, "\"backward\"");
      // Those in "forward" are told of rank 1, rank 1 of one of them.
      if (rank == 1) {
        EXPECT_NE(error.parts().rank, 1);
        EXPECT_EQ(error.parts().operation, "backward");
        EXPECT_SAYS(error, "while this rank 1 is in \"backward\"");
      } else {
        EXPECT_EQ(error.parts().rank, 1);
        EXPECT_EQ(error.parts().operation, "forward");
        EXPECT_SAYS(error, "rank 1 is in \"backward\" (exchange 1) while ");
      }
    }
  }
}

TEST_P(FailureConformance, DifferentDetailsSizesCollectivesReductionsAndRootsAreMismatches) {
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
    const auto errors = mismatch(engine(), [&](Communicator& comm, Collectives& collectives) {
      deviate(comm.rank(), collectives);
    });
    const auto odd = errors.find(1);
    if (odd == errors.end()) continue;
    EXPECT_NE(odd->second.parts().rank, 1);
    EXPECT_SAYS(odd->second, "this rank 1");
  }
}

}  // namespace
}  // namespace shardrec::comm
