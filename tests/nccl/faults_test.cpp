// Faults of NCCL and of peers: communicators that are made late or never, operations that hang, errors, and abort.
#include <atomic>
#include <barrier>

#include "core/error.h"
#include "device/of_plugin.h"
#include "exchange.h"

namespace shardrec::test {
namespace {

class NcclFaults : public NcclTest {};

constexpr size_t kBytes = 10000;  // more than a send keeps

// A message from the other one of two ranks to each.
struct Swap {
  Swap(const Rank& rank)  // NOLINT(google-explicit-constructor)
      : sent(rank.bytes(std::string(kBytes, static_cast<char>('a' + rank.rank)))),
        received(rank.bytes(std::string(kBytes, '?'))),
        send{sent.data(), kBytes, 1 - rank.rank},
        receive{received.data(), kBytes, 1 - rank.rank},
        expected(kBytes, static_cast<char>('b' - rank.rank)) {}

  shardrec_nccl_result begin(const Rank& rank, shardrec_nccl_comm* comm) const {
    return nccl().exchange(comm, rank.in(), &send, 1, &receive, 1);
  }

  DeviceBytes sent;
  DeviceBytes received;
  shardrec_nccl_part send;
  shardrec_nccl_part receive;
  std::string expected;
};

const std::string kGarbage(kBytes, static_cast<char>(0xA5));

TEST_F(NcclFaults, ACommunicatorIsInProgressUntilTheLastRankIsThere) {
  OF_FAKE(fake_nccl_delay_init)(1, 200);
  const Id id = make_id();
  run_ranks(2, 2, [&](Rank& rank) {
    const auto start = std::chrono::steady_clock::now();
    shardrec_nccl_comm* const comm = rank.join(id);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(190));
    exchange_rounds(rank, comm, 1);
    Rank::leave(comm);
  });
}

TEST_F(NcclFaults, ACommunicatorThatIsNeverMadeCanBeAborted) {
  OF_FAKE(fake_nccl_delay_init)(1, -1);
  const Id id = make_id();
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* comm = nullptr;
    EXPECT_EQ(rank.begin(id, &comm), SHARDREC_NCCL_IN_PROGRESS);
    EXPECT_FALSE(
        eventually([&] { return nccl().progress(comm) != SHARDREC_NCCL_IN_PROGRESS; }, 0.1));
    EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
  });
}

TEST_F(NcclFaults, RefusedArgumentsMakeNoCommunicator) {
  run_ranks(1, 1, [&](Rank& rank) {
    shardrec_nccl_comm* comm = nullptr;
    const Id nonsense{};
    EXPECT_EQ(rank.begin(nonsense, &comm), 4);  // ncclInvalidArgument
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(nccl().create(make_id().data(), 2, 2, 0, &comm), 4);
    EXPECT_EQ(comm, nullptr);
  });
}

TEST_F(NcclFaults, AbortEndsAnExchangeWithGarbageAndTheStreamGoesOn) {
  const Id id = make_id();
  std::barrier aborted(2);
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    if (rank.rank == 0) {  // its peer never comes
      const Swap first(rank);
      const Swap second(rank);
      EXPECT_EQ(first.begin(rank, comm), SHARDREC_NCCL_OK);
      EXPECT_EQ(second.begin(rank, comm), SHARDREC_NCCL_OK);
      EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_OK);
      EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
      EXPECT_EQ(first.received.read(), kGarbage);
      EXPECT_EQ(second.received.read(), kGarbage);
      EXPECT_EQ(first.sent.read(), std::string(kBytes, 'a'));
    }
    aborted.arrive_and_wait();
    if (rank.rank == 1) {
      EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
    }
    // A new group has no trouble with the old one.
    static Id again;
    if (rank.rank == 0) again = make_id();
    aborted.arrive_and_wait();
    shardrec_nccl_comm* const next = rank.join(again);
    const Swap swap(rank);
    EXPECT_EQ(swap.begin(rank, next), SHARDREC_NCCL_OK);
    EXPECT_EQ(swap.received.read(), swap.expected);
    Rank::leave(next);
  });
}

TEST_F(NcclFaults, AbortOfOneRankDoesNotTellTheOthers) {
  const Id id = make_id();
  std::barrier step(2);
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    if (rank.rank == 1) {
      EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
    }
    step.arrive_and_wait();
    if (rank.rank == 1) return;
    const Swap swap(rank);
    EXPECT_EQ(swap.begin(rank, comm), SHARDREC_NCCL_OK);
    EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_OK);
    OF_FAKE(fake_nccl_set_abort_is_seen)(1);
    EXPECT_EQ(nccl().progress(comm), 6);  // ncclRemoteError
    EXPECT_EQ(swap.begin(rank, comm), 6);
    EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
    EXPECT_EQ(swap.received.read(), kGarbage);
  });
}

TEST_F(NcclFaults, AnAsynchronousErrorIsSeenByItsRankAndOthersHang) {
  OF_FAKE(fake_nccl_set_async_error)(1, 2);
  const Id id = make_id();
  std::barrier step(2);
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    const Swap first(rank);
    const Swap second(rank);
    EXPECT_EQ(first.begin(rank, comm), SHARDREC_NCCL_OK);
    EXPECT_EQ(second.begin(rank, comm), SHARDREC_NCCL_OK);
    if (rank.rank == 1) {
      EXPECT_TRUE(eventually([&] { return nccl().progress(comm) == 6; }));
    }
    step.arrive_and_wait();
    if (rank.rank == 0) {
      EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_OK);
    }
    EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
    EXPECT_EQ(second.received.read(), kGarbage);
    if (rank.rank == 1) {  // the other one may have aborted before it was over
      EXPECT_EQ(first.received.read(), first.expected);
    }
  });
}

TEST_F(NcclFaults, AnOperationThatHangsIsEndedByAbortFromAnotherThread) {
  OF_FAKE(fake_nccl_set_hang)(0, 1);
  const Id id = make_id();
  std::barrier step(2);
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    const Swap swap(rank);
    EXPECT_EQ(swap.begin(rank, comm), SHARDREC_NCCL_OK);
    std::thread other([&] {
      compute::cuda::host::table().enter_device(rank.rank);
      EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
    });
    EXPECT_EQ(swap.received.read(), kGarbage);
    other.join();
  });
}

TEST_F(NcclFaults, WhatACallInProgressHasNotEnqueuedIsGoneWithAbort) {
  OF_FAKE(fake_nccl_set_polls)(1);
  const Id id = make_id();
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    const Swap swap(rank);
    EXPECT_EQ(swap.begin(rank, comm), SHARDREC_NCCL_IN_PROGRESS);
    EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
    EXPECT_EQ(swap.received.read(), std::string(kBytes, '?'));
  });
}

TEST_F(NcclFaults, WhatABrokenDeviceHasEndsAndItsPeerWaitsUntilItAborts) {
  constexpr int kIllegalAddress = 700;
  const Id id = make_id();
  std::barrier step(2);
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(id);
    const Swap swap(rank);
    step.arrive_and_wait();
    if (rank.rank == 0) {
      of_plugin<void(int64_t, int)>("simt_fail_operation")(1, kIllegalAddress);
      EXPECT_EQ(swap.begin(rank, comm), SHARDREC_NCCL_OK);
      EXPECT_THROW(rank.stream->wait(), core::Error);
      of_plugin<void()>("simt_repair_devices")();
      EXPECT_EQ(swap.received.read(), std::string(kBytes, '?'));
    }
    step.arrive_and_wait();
    if (rank.rank == 1) {
      EXPECT_EQ(swap.begin(rank, comm), SHARDREC_NCCL_OK);
    }
    EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
    if (rank.rank == 1) {
      EXPECT_EQ(swap.received.read(), kGarbage);
    }
  });
}

TEST_F(NcclFaults, ADeviceOfTwoRanksIsRefusedWhereAskedFor) {
  OF_FAKE(fake_nccl_set_one_rank_per_device)(1);
  const Id id = make_id();
  run_ranks(2, 1, [&](Rank& rank) {
    shardrec_nccl_comm* comm = nullptr;
    EXPECT_EQ(rank.begin(id, &comm), SHARDREC_NCCL_IN_PROGRESS);
    EXPECT_EQ(settled(comm, SHARDREC_NCCL_IN_PROGRESS), 5);  // ncclInvalidUsage
    EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
  });
}

}  // namespace
}  // namespace shardrec::test
