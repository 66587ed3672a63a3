// What programs may not do with NCCL is found by the tests' own: each kind of it, and nothing where all is well (which
// the other tests check).
#include <barrier>
#include <cstdlib>

#include "comm/nccl/nccl_api.h"
#include "ranks.h"

namespace shardrec::test {
namespace {

using comm::nccl::Api;

constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr size_t kBytes = 64;

class NcclMisuse : public NcclTest {
 protected:
  // A violation of these words was the last one; none are left.
  static void expect_violation(const std::string& words) {
    EXPECT_GT(OF_FAKE(fake_nccl_violations)(), 0) << "expected: " << words;
    const std::string last = OF_FAKE(fake_nccl_last_violation)();
    EXPECT_NE(last.find(words), std::string::npos) << last;
    OF_FAKE(fake_nccl_forget_violations)();
  }
  static bool any_violation() { return OF_FAKE(fake_nccl_violations)() > 0; }

  // Runs two ranks with a communicator each, which the body ends.
  static void with_two(const std::function<void(Rank&, shardrec_nccl_comm*)>& body,
                       int devices = 2) {
    const Id id = make_id();
    run_ranks(2, devices, [&](Rank& rank) { body(rank, rank.join(id)); });
  }
  // The same, where each enqueues something, which may never end.
  static void with_two_stuck(const std::function<void(Rank&, shardrec_nccl_comm*)>& enqueue) {
    std::barrier step(2);
    with_two([&](Rank& rank, shardrec_nccl_comm* comm) {
      enqueue(rank, comm);
      step.arrive_and_wait();
      EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_OK);
      step.arrive_and_wait();
      EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
      rank.stream->wait();
    });
  }
};

// Enqueued without a buffer that is looked at later; memory of the device that lives as long as its stream.
DeviceBytes room(const Rank& rank, size_t bytes = kBytes) {
  return rank.bytes(std::string(bytes, 'x'));
}

void send(const Rank& rank, shardrec_nccl_comm* comm, const DeviceBytes& from, size_t bytes) {
  const shardrec_nccl_part part{from.data(), bytes, 1 - rank.rank};
  EXPECT_EQ(nccl().exchange(comm, rank.in(), &part, 1, nullptr, 0), SHARDREC_NCCL_OK);
}

void receive(const Rank& rank, shardrec_nccl_comm* comm, const DeviceBytes& to, size_t bytes) {
  const shardrec_nccl_part part{to.data(), bytes, 1 - rank.rank};
  EXPECT_EQ(nccl().exchange(comm, rank.in(), nullptr, 0, &part, 1), SHARDREC_NCCL_OK);
}

void all_reduce(const Rank& rank, shardrec_nccl_comm* comm, const DeviceBytes& data, size_t count,
                int32_t dtype = SHARDREC_NCCL_FLOAT32, int32_t reduction = SHARDREC_NCCL_SUM) {
  const shardrec_nccl_vector vector{data.data(), data.data(), count, dtype, reduction};
  EXPECT_EQ(nccl().all_reduce(comm, rank.in(), &vector), SHARDREC_NCCL_OK);
}

TEST_F(NcclMisuse, ACallWhileOneIsInProgress) {
  OF_FAKE(fake_nccl_set_polls)(1);
  run_ranks(1, 1, [](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(make_id());
    const DeviceBytes data = room(rank);
    const shardrec_nccl_vector vector{data.data(), data.data(), 4, SHARDREC_NCCL_INT32, 0};
    EXPECT_EQ(nccl().all_reduce(comm, rank.in(), &vector), SHARDREC_NCCL_IN_PROGRESS);
    EXPECT_EQ(nccl().all_reduce(comm, rank.in(), &vector), kInvalidUsage);
    expect_violation("ncclAllReduce for a communicator that is in progress");
    EXPECT_EQ(settled(comm, SHARDREC_NCCL_IN_PROGRESS), SHARDREC_NCCL_OK);
    Rank::leave(comm);
  });
}

TEST_F(NcclMisuse, UseAfterAbortDestroyAndFinalize) {
  run_ranks(1, 1, [](Rank& rank) {
    shardrec_nccl_comm* const aborted = rank.join(make_id());
    EXPECT_EQ(nccl().abort(aborted), SHARDREC_NCCL_OK);
    EXPECT_EQ(nccl().progress(aborted), kInvalidArgument);
    expect_violation("was aborted or destroyed");
    shardrec_nccl_comm* const finalized = rank.join(make_id());
    EXPECT_EQ(settled(finalized, nccl().finalize(finalized)), SHARDREC_NCCL_OK);
    const DeviceBytes data = room(rank);
    const shardrec_nccl_vector vector{data.data(), data.data(), 4, SHARDREC_NCCL_INT32, 0};
    EXPECT_EQ(nccl().all_reduce(finalized, rank.in(), &vector), kInvalidUsage);
    expect_violation("finalized");
    EXPECT_EQ(nccl().destroy(finalized), SHARDREC_NCCL_OK);
    EXPECT_EQ(nccl().abort(finalized), kInvalidArgument);
    expect_violation("ncclCommAbort for a communicator that was aborted or destroyed");
  });
}

TEST_F(NcclMisuse, TwoThreadsInCallsForOneDevice) {
  run_ranks(1, 1, [](Rank& rank) {
    shardrec_nccl_comm* const first = rank.join(make_id());
    shardrec_nccl_comm* const second = rank.join(make_id());
    OF_FAKE(fake_nccl_set_call_time)(300);
    std::barrier start(2);
    std::thread other([&] {
      compute::cuda::host::table().enter_device(0);
      start.arrive_and_wait();
      EXPECT_EQ(nccl().progress(second), SHARDREC_NCCL_OK);
    });
    start.arrive_and_wait();
    EXPECT_EQ(nccl().progress(first), SHARDREC_NCCL_OK);
    other.join();
    expect_violation("two threads are in calls for communicators of device 0");
    OF_FAKE(fake_nccl_set_call_time)(0);
    Rank::leave(first);
    Rank::leave(second);
  });
}

TEST_F(NcclMisuse, TheEndOfACommunicatorBesideACallForAnotherIsNone) {
  run_ranks(1, 1, [](Rank& rank) {
    for (const bool in_order : {true, false}) {
      shardrec_nccl_comm* const first = rank.join(make_id());
      shardrec_nccl_comm* const second = rank.join(make_id());
      if (in_order) {
        EXPECT_EQ(settled(second, nccl().finalize(second)), SHARDREC_NCCL_OK);
      }
      OF_FAKE(fake_nccl_set_call_time)(200);
      std::barrier start(2);
      std::thread other([&] {
        compute::cuda::host::table().enter_device(0);
        start.arrive_and_wait();
        EXPECT_EQ(in_order ? nccl().destroy(second) : nccl().abort(second), SHARDREC_NCCL_OK);
      });
      start.arrive_and_wait();
      EXPECT_EQ(nccl().progress(first), SHARDREC_NCCL_OK);
      other.join();
      EXPECT_FALSE(any_violation());
      OF_FAKE(fake_nccl_set_call_time)(0);
      Rank::leave(first);
    }
  });
}

TEST_F(NcclMisuse, ThreadsOfRanksThatShareADeviceAreNone) {
  std::barrier start(2);
  with_two(
      [&](Rank& /*rank*/, shardrec_nccl_comm* comm) {
        OF_FAKE(fake_nccl_set_call_time)(100);
        start.arrive_and_wait();
        EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_OK);
        start.arrive_and_wait();
        EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
      },
      1);
  EXPECT_FALSE(any_violation());
}

TEST_F(NcclMisuse, AnotherCurrentDevice) {
  run_ranks(1, 1, [](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(make_id());
    compute::cuda::host::table().enter_device(1);
    EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_OK);
    expect_violation("for a communicator of device 0 from a thread whose device is 1");
    compute::cuda::host::table().leave_device();
    const compute::cuda::host::Stream elsewhere(1);
    const DeviceBytes data = room(rank);
    const shardrec_nccl_vector vector{data.data(), data.data(), 4, SHARDREC_NCCL_INT32, 0};
    EXPECT_EQ(nccl().all_reduce(comm, elsewhere.number(), &vector), kInvalidArgument);
    expect_violation("in a stream of device 1, for a communicator of device 0");
    Rank::leave(comm);
  });
}

TEST_F(NcclMisuse, AMessageOfNothing) {
  run_ranks(1, 1, [](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(make_id());
    const auto send_now = of_fake<std::remove_pointer_t<decltype(Api::ncclSend)>>("ncclSend");
    const DeviceBytes data = room(rank);
    void* const stream = std::bit_cast<void*>(rank.in());
    EXPECT_EQ(send_now(data.data(), 0, comm::nccl::kInt8, 0, comm, stream), kInvalidArgument);
    expect_violation("ncclSend of 0 bytes");
    EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
  });
}

TEST_F(NcclMisuse, GroupsThatAreNotPaired) {
  const auto start =
      of_fake<std::remove_pointer_t<decltype(Api::ncclGroupStart)>>("ncclGroupStart");
  const auto end = of_fake<std::remove_pointer_t<decltype(Api::ncclGroupEnd)>>("ncclGroupEnd");
  EXPECT_EQ(end(), kInvalidUsage);
  expect_violation("ncclGroupEnd without ncclGroupStart");
  std::thread([&] { start(); }).join();
  expect_violation("a thread ends in a group");
  run_ranks(1, 1, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(make_id());
    start();
    EXPECT_EQ(nccl().finalize(comm), kInvalidUsage);
    expect_violation("ncclCommFinalize in a group");
    EXPECT_EQ(end(), SHARDREC_NCCL_OK);
    EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
  });
}

TEST(NcclMisuseDeathTest, EndsTheProcessWhereAskedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        setenv("SHARDREC_FAKE_NCCL_FATAL", "1", 1);
        of_fake<std::remove_pointer_t<decltype(Api::ncclGroupEnd)>>("ncclGroupEnd")();
      },
      "violation: ncclGroupEnd without ncclGroupStart");
}

TEST_F(NcclMisuse, AGroupInSeveralStreams) {
  const auto start =
      of_fake<std::remove_pointer_t<decltype(Api::ncclGroupStart)>>("ncclGroupStart");
  const auto end = of_fake<std::remove_pointer_t<decltype(Api::ncclGroupEnd)>>("ncclGroupEnd");
  run_ranks(1, 1, [&](Rank& rank) {
    shardrec_nccl_comm* const comm = rank.join(make_id());
    const Rank other(0, 1, 0);
    const DeviceBytes data = room(rank);
    const shardrec_nccl_vector vector{data.data(), data.data(), 4, SHARDREC_NCCL_INT32, 0};
    start();
    EXPECT_EQ(nccl().all_reduce(comm, rank.in(), &vector), SHARDREC_NCCL_OK);
    EXPECT_EQ(nccl().all_reduce(comm, other.in(), &vector), kInvalidUsage);
    EXPECT_EQ(end(), kInvalidUsage);
    expect_violation("calls of one communicator in different streams");
    Rank::leave(comm);
  });
}

TEST_F(NcclMisuse, DestroyWhileOperationsArePending) {
  with_two([](Rank& rank, shardrec_nccl_comm* comm) {
    if (rank.rank == 1) {
      EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
      return;
    }
    const DeviceBytes data = room(rank);
    receive(rank, comm, data, kBytes);
    EXPECT_EQ(nccl().destroy(comm), SHARDREC_NCCL_OK);
    rank.stream->wait();
  });
  expect_violation("ncclCommDestroy while operations are pending");
}

TEST_F(NcclMisuse, SizesOfAMessageThatDiffer) {
  with_two([](Rank& rank, shardrec_nccl_comm* comm) {
    const DeviceBytes data = room(rank);
    rank.rank == 0 ? send(rank, comm, data, 60) : receive(rank, comm, data, 50);
    rank.stream->wait();
    Rank::leave(comm);
  });
  expect_violation("rank 0 sends 60 bytes, rank 1 receives 50");
}

TEST_F(NcclMisuse, CollectivesThatDiffer) {
  with_two([](Rank& rank, shardrec_nccl_comm* comm) {
    const DeviceBytes data = room(rank);
    all_reduce(rank, comm, data, rank.rank == 0 ? 4 : 5);
    rank.stream->wait();
    Rank::leave(comm);
  });
  expect_violation("has count");
  with_two([](Rank& rank, shardrec_nccl_comm* comm) {
    const DeviceBytes data = room(rank);
    all_reduce(rank, comm, data, 4, rank.rank == 0 ? SHARDREC_NCCL_INT32 : SHARDREC_NCCL_FLOAT32);
    rank.stream->wait();
    Rank::leave(comm);
  });
  expect_violation("type");
  with_two([](Rank& rank, shardrec_nccl_comm* comm) {
    const DeviceBytes data = room(rank);
    all_reduce(rank, comm, data, 4, SHARDREC_NCCL_INT32,
               rank.rank == 0 ? SHARDREC_NCCL_MIN : SHARDREC_NCCL_MAX);
    rank.stream->wait();
    Rank::leave(comm);
  });
  expect_violation("reduction");
  with_two([](Rank& rank, shardrec_nccl_comm* comm) {
    const DeviceBytes data = room(rank);
    const shardrec_nccl_vector vector{data.data(), data.data(), 4, SHARDREC_NCCL_INT32, 0};
    if (rank.rank == 0) {
      EXPECT_EQ(nccl().all_reduce(comm, rank.in(), &vector), SHARDREC_NCCL_OK);
    } else {
      EXPECT_EQ(nccl().all_gather(comm, rank.in(), &vector), SHARDREC_NCCL_OK);
    }
    rank.stream->wait();
    Rank::leave(comm);
  });
  expect_violation("an all-");
}

TEST_F(NcclMisuse, OperationsThatDifferAreFoundWhileTheyWait) {
  with_two_stuck([](Rank& rank, shardrec_nccl_comm* comm) {
    static thread_local std::unique_ptr<DeviceBytes> data;
    data = std::make_unique<DeviceBytes>(room(rank));
    rank.rank == 0 ? all_reduce(rank, comm, *data, 4) : receive(rank, comm, *data, kBytes);
  });
  expect_violation("call different operations of a communicator");
}

TEST_F(NcclMisuse, CommunicatorsInDifferentOrders) {
  const Id ids[2] = {make_id(), make_id()};
  std::barrier step(2);
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* const comms[2] = {rank.join(ids[0]), rank.join(ids[1])};
    const DeviceBytes data = room(rank);
    // In one stream they wait for each other.
    for (int i = 0; i < 2; ++i) all_reduce(rank, comms[i ^ rank.rank], data, 4);
    step.arrive_and_wait();
    for (shardrec_nccl_comm* const comm : comms) {
      EXPECT_EQ(nccl().progress(comm), SHARDREC_NCCL_OK);
    }
    step.arrive_and_wait();
    for (shardrec_nccl_comm* const comm : comms) {
      EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
    }
    rank.stream->wait();
  });
  expect_violation("call their communicators in different orders");
}

TEST_F(NcclMisuse, RanksThatDoNotAgreeOnTheirNumber) {
  const Id id = make_id();
  std::barrier step(2);
  run_ranks(2, 2, [&](Rank& rank) {
    shardrec_nccl_comm* comm = nullptr;
    EXPECT_EQ(nccl().create(id.data(), rank.rank, 2 + rank.rank, 0, &comm),
              SHARDREC_NCCL_IN_PROGRESS);
    nccl().progress(comm);
    step.arrive_and_wait();
    EXPECT_EQ(nccl().abort(comm), SHARDREC_NCCL_OK);
  });
  expect_violation("ranks say that their communicator has");
}

}  // namespace
}  // namespace shardrec::test
