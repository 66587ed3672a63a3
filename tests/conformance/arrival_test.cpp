// Whether an exchange has arrived: asked without blocking, on every engine.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "comm/message_texts.h"
#include "conformance/engine.h"
#include "support/eventually.h"

namespace shardrec::comm {
namespace {

bool arrives(Channel& channel, Ticket ticket) {
  return test::eventually([&] { return channel.has_arrived(ticket); });
}

// The late rank posts when all others have asked: it waits for them on another channel.
TEST_P(ExchangeConformance, AnExchangeHasArrivedOnceTheLastRankHasPostedAndNotBefore) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      const auto channel = comm.open_channel(Purpose::kInput);
      Collectives gate(comm.open_channel(Purpose::kControl), comm.rank(), comm.size());
      for (int round = 0; round < 2 * Channel::kMostInFlight; ++round) {
        const bool is_late = round % world == comm.rank();
        Post mine;
        if (!is_late) {
          mine = post(*channel, 0, round, comm.rank(), world);
          for (int i = 0; i < 3; ++i) ASSERT_FALSE(channel->has_arrived(mine.ticket));
        }
        gate.barrier(kTest);
        if (is_late) mine = post(*channel, 0, round, comm.rank(), world);
        ASSERT_TRUE(arrives(*channel, mine.ticket)) << "round " << round;
        ASSERT_TRUE(channel->has_arrived(mine.ticket)) << "round " << round;
        receive(*channel, mine.ticket, 0, round, comm.rank(), world);
        channel->release(mine.ticket);
        channel->reclaim(mine.ticket);
      }
    });
  }
}

// Nobody receives before all exchanges have arrived: asking alone brings the long messages too.
TEST_P(ExchangeConformance, SeveralExchangesArriveWhileRanksDoNothingButAsk) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      const auto channel = comm.open_channel(Purpose::kInput);
      std::vector<Post> posts;
      for (int i = 0; i < Channel::kMostInFlight; ++i) {
        posts.push_back(post(*channel, 0, i, comm.rank(), world));
      }
      ASSERT_TRUE(arrives(*channel, posts.back().ticket));
      for (const Post& mine : posts) ASSERT_TRUE(arrives(*channel, mine.ticket));
      for (int i = 0; i < Channel::kMostInFlight; ++i) {
        const Ticket ticket = posts[static_cast<size_t>(i)].ticket;
        receive(*channel, ticket, 0, i, comm.rank(), world);
        channel->release(ticket);
      }
      for (const Post& mine : posts) channel->reclaim(mine.ticket);
    });
  }
}

TEST_P(FailureConformance, AnExchangeThatCanNeverArriveIsToldAndReceiveSaysWhy) {
  const int world = *std::max_element(engine().worlds.begin(), engine().worlds.end());
  if (world < 2) return;
  for (const auto& [rank, error] : run(engine(), world, [&](Communicator& comm) {
         const auto channel = comm.open_channel(Purpose::kInput);
         const Post first = post(*channel, 0, 0, comm.rank(), world);
         receive(*channel, first.ticket, 0, 0, comm.rank(), world);
         channel->release(first.ticket);
         if (comm.rank() == 1) core::fail(SHARDREC_INTERNAL, "this rank dies here");
         const Post second = post(*channel, 0, 1, comm.rank(), world);
         ASSERT_TRUE(arrives(*channel, second.ticket));
         receive(*channel, second.ticket, 0, 1, comm.rank(), world);
       })) {
    ASSERT_TRUE(error) << "rank " << rank;
    if (rank == 1) {
      EXPECT_EQ(error->status(), SHARDREC_INTERNAL);
      continue;
    }
    EXPECT_EQ(error->status(), SHARDREC_PEER_FAILED) << error->sentence();
    EXPECT_EQ(error->parts().rank, 1) << error->sentence();
  }
}

}  // namespace
}  // namespace shardrec::comm
