// What a channel between threads takes for each pair of ranks: malloc's own count.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/local/local_group.h"
#include "support/bytes_in_use.h"

namespace shardrec::comm {
namespace {

constexpr int kRanks = 64;
constexpr int kChannels = 8;
constexpr int kExchanges = 40;

// Of all channels together, after exchanges one after another. Each rank's calls come from this thread.
double bytes_per_pair(bool same_to_all) {
  const auto group = local::make_group(kRanks, kRanks);
  std::vector<std::shared_ptr<Communicator>> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(local::join(group, rank));
  const std::byte data[kRanks] = {};
  std::vector<ConstBytes> received(kRanks);
  const int64_t before = test::bytes_in_use();
  std::vector<std::vector<std::shared_ptr<Channel>>> channels(kChannels);
  for (auto& channel : channels) {
    for (const auto& rank : ranks) channel.push_back(rank->open_channel(Purpose::kInput));
    for (int n = 0; n < kExchanges; ++n) {
      std::vector<Ticket> tickets;
      for (const auto& end : channel) {
        std::vector<ConstBytes> send(kRanks, {data, 1});
        for (size_t to = 0; to < send.size() && !same_to_all; ++to) send[to] = {data + to, 1};
        tickets.push_back(end->post({.name = "test", .kind = 1}, send, nullptr));
      }
      for (size_t rank = 0; rank < channel.size(); ++rank) {
        channel[rank]->receive(tickets[rank], received);
        for (const ConstBytes message : received) {
          EXPECT_EQ(message.data(), same_to_all ? data : data + rank);
        }
        channel[rank]->release(tickets[rank]);
        channel[rank]->release(tickets[rank]);  // changes nothing
      }
      for (size_t rank = 0; rank < channel.size(); ++rank) channel[rank]->reclaim(tickets[rank]);
    }
  }
  const auto taken = static_cast<double>(test::bytes_in_use() - before);
  return taken / (kRanks * kRanks * kChannels);
}

// 16 marks, an address and a size; and what a rank has of a channel, divided by the ranks.
TEST(LocalChannelMemory, IsAnAddressAndMarksForEachPairOfRanks) {
  const double different = bytes_per_pair(false);
  const double same = bytes_per_pair(true);
  if (SHARDREC_SANITIZED != 0) GTEST_SKIP() << "a sanitizer has a malloc of its own";
  EXPECT_GT(same, 16);
  EXPECT_LT(different - same, 20);
  EXPECT_LT(different, 100);
}

}  // namespace
}  // namespace shardrec::comm
