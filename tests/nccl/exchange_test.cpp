// Exchanges over the plug-in: what was sent is received, whatever ranks, devices and sizes there are.
#include "exchange.h"

namespace shardrec::test {
namespace {

constexpr int kRounds = 6;

class NcclExchange : public NcclTest {};

TEST_F(NcclExchange, BringsEachRankWhatEachSent) {
  for (int size = 1; size <= 4; ++size) {
    const Id id = make_id();
    run_ranks(size, 4, [&](Rank& rank) {
      shardrec_nccl_comm* const comm = rank.join(id);
      exchange_rounds(rank, comm, kRounds);
      Rank::leave(comm);
    });
  }
}

TEST_F(NcclExchange, WorksBetweenRanksThatShareADevice) {
  const Id id = make_id();
  run_ranks(4, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    exchange_rounds(rank, comm, kRounds);
    Rank::leave(comm);
  });
}

TEST_F(NcclExchange, WorksWhereEachCallIsInProgressForAWhile) {
  OF_FAKE(fake_nccl_set_polls)(3);
  const Id id = make_id();
  run_ranks(3, 3, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    exchange_rounds(rank, comm, kRounds);
    Rank::leave(comm);
  });
}

TEST_F(NcclExchange, IsInProgressUntilItIsPolledOften) {
  OF_FAKE(fake_nccl_set_polls)(2);
  const Id id = make_id();
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    const Exchange exchange(rank, 2);
    EXPECT_EQ(exchange.begin(rank, comm), SHARDREC_NCCL_IN_PROGRESS);
    EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_IN_PROGRESS);
    EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_IN_PROGRESS);
    EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_OK);
    exchange.expect_received();
    Rank::leave(comm);
  });
}

TEST_F(NcclExchange, OfNothingEnqueuesNothing) {
  const Id id = make_id();
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    const std::vector<shardrec_nccl_part> none{{nullptr, 0, 0}, {nullptr, 0, 1}};
    EXPECT_EQ(nccl().exchange(comm, rank.in(), none.data(), 2, none.data(), 2), SHARDREC_NCCL_OK);
    EXPECT_EQ(nccl().exchange(comm, rank.in(), nullptr, 0, nullptr, 0), SHARDREC_NCCL_OK);
    Rank::leave(comm);
  });
}

TEST_F(NcclExchange, GoesOnInOrderOverSeveralStreams) {
  const Id id = make_id();
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    const Rank other(rank.rank, rank.size, rank.rank);
    std::vector<Exchange> exchanges;
    for (int round = 0; round < kRounds; ++round) {
      const Rank& in = round % 2 == 0 ? rank : other;
      exchanges.emplace_back(in, round);
      EXPECT_EQ(exchanges.back().begin(in, comm), SHARDREC_NCCL_OK);
    }
    for (const Exchange& exchange : exchanges) exchange.expect_received();
    Rank::leave(comm);
  });
}

TEST_F(NcclExchange, TakesManySmallMessagesAhead) {
  const Id id = make_id();
  constexpr int kMany = 200;
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    const DeviceBytes data = rank.bytes("abc");
    const shardrec_nccl_part part{data.data(), 3, 1 - rank.rank};
    for (int i = 0; i < kMany; ++i) {
      const bool sends = rank.rank == 0;
      EXPECT_EQ(nccl().exchange(comm, rank.in(), &part, sends ? 1 : 0, &part, sends ? 0 : 1),
                SHARDREC_NCCL_OK);
    }
    EXPECT_EQ(data.read(), "abc");
    Rank::leave(comm);
  });
}

}  // namespace
}  // namespace shardrec::test
