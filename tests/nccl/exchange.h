// An exchange of each rank with each, of which all that is received is known.
#pragma once

#include <string>
#include <vector>

#include "ranks.h"

namespace shardrec::test {

// Nothing for some pairs, a few bytes or more than a send keeps for others.
inline std::string message(int from, int to, int round) {
  const int kind = (from + 2 * to + round) % 4;
  const size_t bytes = kind == 0 ? 0 : kind == 1 ? 7 : kind == 2 ? 5000 : 70000;
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>(i * 31 + static_cast<size_t>(from * 7 + to * 3 + round));
  }
  return text;
}

// Buffers of an exchange; they have to live until it is over.
struct Exchange {
  Exchange(const Rank& rank, int round) {
    for (int peer = 0; peer < rank.size; ++peer) {
      sent.push_back(rank.bytes(message(rank.rank, peer, round)));
      expected.push_back(message(peer, rank.rank, round));
      received.push_back(rank.bytes(std::string(expected.back().size(), '?')));
      sends.push_back(
          {sent.back().data(), message(rank.rank, peer, round).size(), static_cast<int32_t>(peer)});
      receives.push_back(
          {received.back().data(), expected.back().size(), static_cast<int32_t>(peer)});
    }
  }
  shardrec_nccl_result begin(const Rank& rank, shardrec_nccl_comm* comm) const {
    return nccl().exchange(comm, rank.in(), sends.data(), static_cast<int32_t>(sends.size()),
                           receives.data(), static_cast<int32_t>(receives.size()));
  }
  void expect_received() const {
    for (size_t peer = 0; peer < received.size(); ++peer) {
      EXPECT_TRUE(received[peer].read() == expected[peer]) << "from rank " << peer;
    }
  }

  std::vector<DeviceBytes> sent;
  std::vector<DeviceBytes> received;
  std::vector<std::string> expected;
  std::vector<shardrec_nccl_part> sends;
  std::vector<shardrec_nccl_part> receives;
};

inline void exchange_rounds(const Rank& rank, shardrec_nccl_comm* comm, int rounds) {
  std::vector<Exchange> exchanges;
  for (int round = 0; round < rounds; ++round) {
    exchanges.emplace_back(rank, round);
    EXPECT_EQ(settled(comm, exchanges.back().begin(rank, comm)), SHARDREC_NCCL_OK);
  }
  for (const Exchange& exchange : exchanges) exchange.expect_received();
}

}  // namespace shardrec::test
