// Exchanges on channels: what arrives, in which order, on which channel.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <thread>
#include <vector>

#include "comm/message_texts.h"
#include "conformance/engine.h"

namespace shardrec::comm {
namespace {

TEST_P(ExchangeConformance, DeliversUnevenMessagesOverMoreExchangesThanTheRingHolds) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      const auto channel = comm.open_channel(Purpose::kInput);
      for (int round = 0; round < 3 * Channel::kMostInFlight; ++round) {
        const Post mine = post(*channel, 0, round, comm.rank(), world);
        receive(*channel, mine.ticket, 0, round, comm.rank(), world);
        channel->release(mine.ticket);
        channel->reclaim(mine.ticket);
      }
    });
  }
}

TEST_P(ExchangeConformance, SeveralExchangesMayBePostedBeforeTheFirstIsReceived) {
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      const auto channel = comm.open_channel(Purpose::kInput);
      for (int start = 0; start < 4 * Channel::kMostInFlight; start += Channel::kMostInFlight) {
        std::vector<Post> posts;
        for (int i = 0; i < Channel::kMostInFlight; ++i) {
          posts.push_back(post(*channel, 0, start + i, comm.rank(), world));
        }
        for (int i = 0; i < Channel::kMostInFlight; ++i) {
          receive(*channel, posts[static_cast<size_t>(i)].ticket, 0, start + i, comm.rank(), world);
        }
        // Released and reclaimed in another order than posted.
        for (int i = Channel::kMostInFlight; i-- > 0;) {
          channel->release(posts[static_cast<size_t>(i)].ticket);
        }
        for (const Post& mine : posts) channel->reclaim(mine.ticket);
      }
    });
  }
}

TEST_P(ExchangeConformance, ChannelsNeverMixWhateverTheOrderOfTheirCalls) {
  constexpr int kChannels = 3;
  for (const int world : engine().worlds) {
    run_well(engine(), world, [&](Communicator& comm) {
      std::vector<std::shared_ptr<Channel>> channels;
      for (const Purpose purpose : {Purpose::kInput, Purpose::kOutput, Purpose::kInput}) {
        channels.push_back(comm.open_channel(purpose));
      }
      for (int round = 0; round < 40; ++round) {
        std::array<Post, kChannels> posts;
        // Each rank posts in an order of its own.
        for (int i = 0; i < kChannels; ++i) {
          const int c = (i + comm.rank() + round) % kChannels;
          const auto at = static_cast<size_t>(c);
          posts[at] = post(*channels[at], c, round, comm.rank(), world);
        }
        for (int i = 0; i < kChannels; ++i) {
          const int c = (2 * i + comm.rank()) % kChannels;
          const auto at = static_cast<size_t>(c);
          receive(*channels[at], posts[at].ticket, c, round, comm.rank(), world);
          channels[at]->release(posts[at].ticket);
        }
        // Not before all are released: another rank may be reading them in another order.
        for (size_t c = 0; c < kChannels; ++c) channels[c]->reclaim(posts[c].ticket);
      }
    });
  }
}

TEST_P(ExchangeConformance, ChannelsOfOneRankMayBeUsedByDifferentThreads) {
  constexpr int kChannels = 3;
  run_well(engine(), 3, [&](Communicator& comm) {
    std::vector<std::shared_ptr<Channel>> channels;
    for (int c = 0; c < kChannels; ++c) channels.push_back(comm.open_channel(Purpose::kDense));
    std::vector<std::thread> threads;
    for (int c = 0; c < kChannels; ++c) {
      threads.emplace_back([&, c] {
        Channel& channel = *channels[static_cast<size_t>(c)];
        for (int round = 0; round < 50; ++round) {
          const Post mine = post(channel, c, round, comm.rank(), 3);
          receive(channel, mine.ticket, c, round, comm.rank(), 3);
          channel.release(mine.ticket);
          channel.reclaim(mine.ticket);
        }
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

}  // namespace
}  // namespace shardrec::comm
