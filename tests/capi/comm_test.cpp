// Groups of ranks and communicators through the C API.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "capi_test.h"
#include "support/eventually.h"

namespace shardrec::test {
namespace {

template <class T>
shardrec_tensor view(std::vector<T>& data, shardrec_dtype dtype) {
  shardrec_tensor tensor{};
  EXPECT_OK(shardrec_tensor_vector(data.data(), dtype, static_cast<int64_t>(data.size()), &tensor));
  return tensor;
}

int64_t rank_of_last_error() {
  int64_t rank = -1;
  EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &rank), SHARDREC_OK)
      << shardrec_last_error();
  return rank;
}

std::string operation_of_last_error() {
  char* text = nullptr;
  EXPECT_EQ(shardrec_last_error_text(SHARDREC_ERROR_OPERATION, &text), SHARDREC_OK)
      << shardrec_last_error();
  return take(text);
}

// Waits until a call of another thread is inside an exclusive entry of the communicator. The probe
// itself is one for a moment, hence barrier_despite_probes().
void wait_until_busy(shardrec_comm* comm) {
  ASSERT_TRUE(eventually([&] {
    return shardrec_comm_all_reduce(comm, nullptr, SHARDREC_REDUCTION_SUM) == SHARDREC_BUSY;
  })) << "the other thread never entered";
}

shardrec_status barrier_despite_probes(shardrec_comm* comm) {
  shardrec_status status = SHARDREC_BUSY;
  while (status == SHARDREC_BUSY) status = shardrec_comm_barrier(comm);
  return status;
}

TEST(Comm, KnowsItsRankAndSize) {
  run_ranks(3, [](shardrec_comm* comm, int rank) {
    int32_t number = -1;
    EXPECT_OK(shardrec_comm_rank(comm, &number));
    EXPECT_EQ(number, rank);
    EXPECT_OK(shardrec_comm_size(comm, &number));
    EXPECT_EQ(number, 3);
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(Comm, BarrierReturnsWhenEveryRankHasCalled) {
  std::atomic<int> entered{0};
  run_ranks(4, [&](shardrec_comm* comm, int) {
    for (int round = 1; round <= 20; ++round) {
      entered.fetch_add(1);
      EXPECT_OK(shardrec_comm_barrier(comm));
      EXPECT_GE(entered.load(), 4 * round);
      EXPECT_OK(shardrec_comm_barrier(comm));
    }
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(Comm, AllReduceGivesEveryRankTheSameNumbers) {
  constexpr int kRanks = 3;
  run_ranks(kRanks, [](shardrec_comm* comm, int rank) {
    std::vector<float> sum = {1.0f + static_cast<float>(rank), -2.0f, 0.5f};
    shardrec_tensor tensor = view(sum, SHARDREC_FLOAT32);
    EXPECT_OK(shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_SUM));
    EXPECT_EQ(sum, (std::vector<float>{6, -6, 1.5}));

    std::vector<double> mean = {3.0 * rank};
    tensor = view(mean, SHARDREC_FLOAT64);
    EXPECT_OK(shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_MEAN));
    EXPECT_EQ(mean[0], 3.0);

    std::vector<int32_t> least = {rank, -rank};
    tensor = view(least, SHARDREC_INT32);
    EXPECT_OK(shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_MIN));
    EXPECT_EQ(least, (std::vector<int32_t>{0, -2}));

    std::vector<int64_t> most = {int64_t{rank} << 40};
    tensor = view(most, SHARDREC_INT64);
    EXPECT_OK(shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_MAX));
    EXPECT_EQ(most[0], int64_t{2} << 40);

    std::vector<float> none;
    tensor = view(none, SHARDREC_FLOAT32);
    EXPECT_OK(shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_SUM));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(Comm, CallsThatDifferAreMismatchOnEveryRank) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    std::vector<float> value = {1};
    const shardrec_tensor tensor = view(value, SHARDREC_FLOAT32);
    const shardrec_status status =
        rank == 0 ? shardrec_comm_barrier(comm)
                  : shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_SUM);
    EXPECT_EQ(status, SHARDREC_MISMATCH) << shardrec_last_error();
    EXPECT_TRUE(contains(shardrec_last_error(), "barrier")) << shardrec_last_error();
    EXPECT_TRUE(contains(shardrec_last_error(), "all_reduce")) << shardrec_last_error();
    EXPECT_EQ(shardrec_comm_status(comm), SHARDREC_MISMATCH);
    EXPECT_EQ(shardrec_comm_barrier(comm), SHARDREC_MISMATCH);
  });
}

TEST(Comm, AllReduceOfDifferentDtypesOrReductionsIsMismatch) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    std::vector<float> reals = {1, 2};
    std::vector<int32_t> integers = {1, 2};
    const shardrec_tensor tensor =
        rank == 0 ? view(reals, SHARDREC_FLOAT32) : view(integers, SHARDREC_INT32);
    EXPECT_EQ(shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_SUM), SHARDREC_MISMATCH);
  });
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    std::vector<float> reals = {1, 2};
    const shardrec_tensor tensor = view(reals, SHARDREC_FLOAT32);
    EXPECT_EQ(shardrec_comm_all_reduce(comm, &tensor,
                                       rank == 0 ? SHARDREC_REDUCTION_SUM : SHARDREC_REDUCTION_MAX),
              SHARDREC_MISMATCH);
  });
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    std::vector<float> reals(rank == 0 ? 2 : 3);
    const shardrec_tensor tensor = view(reals, SHARDREC_FLOAT32);
    EXPECT_EQ(shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_SUM), SHARDREC_MISMATCH);
  });
}

TEST(Comm, CloseReturnsWhenEveryRankHasCalled) {
  std::atomic<int> entered{0};
  run_ranks(4, [&](shardrec_comm* comm, int) {
    entered.fetch_add(1);
    EXPECT_OK(shardrec_comm_close(comm));
    EXPECT_EQ(entered.load(), 4);
  });
}

TEST(Comm, CallsAfterCloseAreClosed) {
  run_ranks(2, [](shardrec_comm* comm, int) {
    ASSERT_OK(shardrec_comm_close(comm));
    EXPECT_EQ(shardrec_comm_barrier(comm), SHARDREC_CLOSED);
    EXPECT_EQ(shardrec_comm_close(comm), SHARDREC_CLOSED);
    EXPECT_EQ(shardrec_comm_status(comm), SHARDREC_CLOSED);
    EXPECT_EQ(shardrec_comm_abort(comm, "late"), SHARDREC_CLOSED);
    std::vector<float> value = {1};
    const shardrec_tensor tensor = view(value, SHARDREC_FLOAT32);
    EXPECT_EQ(shardrec_comm_all_reduce(comm, &tensor, SHARDREC_REDUCTION_SUM), SHARDREC_CLOSED);
    shardrec_plan* plan = nullptr;
    EXPECT_EQ(shardrec_plan_collective(comm, nullptr, nullptr, nullptr, &plan), SHARDREC_CLOSED);
    int32_t size = 0;
    EXPECT_OK(shardrec_comm_size(comm, &size));
  });
}

TEST(Comm, ARankIsTakenOnce) {
  Local group;
  ASSERT_OK(shardrec_local_create(2, 1, nullptr, group.out()));
  Comm first;
  ASSERT_OK(shardrec_comm_create_local(group, 1, nullptr, first.out()));
  shardrec_comm* second = nullptr;
  EXPECT_EQ(shardrec_comm_create_local(group, 1, nullptr, &second), SHARDREC_INVALID_STATE);
  EXPECT_EQ(second, nullptr);
  EXPECT_TRUE(contains(shardrec_last_error(), "1")) << shardrec_last_error();
}

TEST(Comm, LivesWithoutTheGroupsHandle) {
  Local group;
  Comm comm;
  ASSERT_OK(shardrec_local_create(1, 1, nullptr, group.out()));
  ASSERT_OK(shardrec_comm_create_local(group, 0, nullptr, comm.out()));
  shardrec_local_destroy(group.out());
  EXPECT_OK(shardrec_comm_barrier(comm));
  EXPECT_OK(shardrec_comm_close(comm));
}

TEST(Comm, ASecondThreadGetsBusyAndQueriesPass) {
  Local group;
  ASSERT_OK(shardrec_local_create(2, 2, nullptr, group.out()));
  Comm comms[2];
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_OK(shardrec_comm_create_local(group, rank, nullptr, comms[rank].out()));
  }
  std::thread waiting([&] { EXPECT_OK(barrier_despite_probes(comms[0])); });
  wait_until_busy(comms[0]);
  EXPECT_EQ(shardrec_comm_barrier(comms[0]), SHARDREC_BUSY);
  EXPECT_EQ(shardrec_comm_close(comms[0]), SHARDREC_BUSY);
  int32_t rank = -1;
  EXPECT_OK(shardrec_comm_rank(comms[0], &rank));
  EXPECT_OK(shardrec_comm_status(comms[0]));
  EXPECT_OK(shardrec_comm_set_f64(comms[0], SHARDREC_COMM_WARN_SECONDS, 10));
  EXPECT_OK(shardrec_comm_barrier(comms[1]));
  waiting.join();
  EXPECT_OK(shardrec_comm_status(comms[0]));
}

TEST(Comm, DestroyWithoutCloseEndsThePeersWait) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    if (rank == 1) {
      shardrec_comm* copy = comm;
      shardrec_comm_destroy(&copy);
      EXPECT_EQ(shardrec_comm_barrier(comm), SHARDREC_CLOSED);
      return;
    }
    EXPECT_EQ(shardrec_comm_barrier(comm), SHARDREC_PEER_FAILED);
    EXPECT_EQ(rank_of_last_error(), 1);
    EXPECT_EQ(shardrec_comm_status(comm), SHARDREC_PEER_FAILED);
    EXPECT_EQ(rank_of_last_error(), 1);
  });
}

TEST(Comm, DestroyDuringTheOwnCallGivesItClosed) {
  Local group;
  ASSERT_OK(shardrec_local_create(2, 2, nullptr, group.out()));
  Comm mine;
  Comm peer;
  ASSERT_OK(shardrec_comm_create_local(group, 0, nullptr, mine.out()));
  ASSERT_OK(shardrec_comm_create_local(group, 1, nullptr, peer.out()));
  shardrec_comm* handle = mine;
  std::thread waiting(
      [&] { EXPECT_EQ(barrier_despite_probes(handle), SHARDREC_CLOSED) << shardrec_last_error(); });
  wait_until_busy(handle);
  shardrec_comm_destroy(mine.out());
  waiting.join();
  EXPECT_EQ(shardrec_comm_barrier(peer), SHARDREC_PEER_FAILED);
}

TEST(Comm, AbortEndsEveryWaitWithRankAndReason) {
  Local group;
  ASSERT_OK(shardrec_local_create(3, 3, nullptr, group.out()));
  std::vector<Comm> comms(3);
  for (int rank = 0; rank < 3; ++rank) {
    ASSERT_OK(
        shardrec_comm_create_local(group, rank, nullptr, comms[static_cast<size_t>(rank)].out()));
  }
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      EXPECT_EQ(barrier_despite_probes(comms[rank]), SHARDREC_ABORTED) << shardrec_last_error();
      EXPECT_EQ(rank_of_last_error(), 0);
      EXPECT_TRUE(contains(shardrec_last_error(),
                           "the user pressed \xe2\x8c\x83"
                           "C"))
          << shardrec_last_error();
    });
  }
  wait_until_busy(comms[0]);
  EXPECT_OK(shardrec_comm_abort(comms[0],
                                "the user pressed \xe2\x8c\x83"
                                "C"));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shardrec_comm_barrier(comms[2]), SHARDREC_ABORTED);
  EXPECT_EQ(shardrec_comm_status(comms[2]), SHARDREC_ABORTED);
}

TEST(Comm, DeadlinesCanBeChangedAndAreKept) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    double seconds = 0;
    EXPECT_OK(shardrec_comm_get_f64(comm, SHARDREC_COMM_STEP_SECONDS, &seconds));
    EXPECT_EQ(seconds, 600);
    EXPECT_OK(shardrec_comm_get_f64(comm, SHARDREC_COMM_SETUP_SECONDS, &seconds));
    EXPECT_EQ(seconds, 1800);
    EXPECT_OK(shardrec_comm_get_f64(comm, SHARDREC_COMM_WARN_SECONDS, &seconds));
    EXPECT_EQ(seconds, 30);
    EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 0.2));
    EXPECT_OK(shardrec_comm_get_f64(comm, SHARDREC_COMM_STEP_SECONDS, &seconds));
    EXPECT_EQ(seconds, 0.2);
    if (rank == 1) return;  // never comes: rank 0's deadline ends its wait
    const auto begin = std::chrono::steady_clock::now();
    const shardrec_status status = shardrec_comm_barrier(comm);
    // The other rank may be gone already when this one arrives.
    EXPECT_TRUE(status == SHARDREC_TIMEOUT || status == SHARDREC_PEER_FAILED);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  });
}

TEST(Comm, ARankThatNeverComesIsTimeoutNamingRankAndOperation) {
  Local group;
  ASSERT_OK(shardrec_local_create(2, 2, nullptr, group.out()));
  Comm mine;
  Comm peer;
  ASSERT_OK(shardrec_comm_create_local(group, 0, nullptr, mine.out()));
  ASSERT_OK(shardrec_comm_create_local(group, 1, nullptr, peer.out()));
  ASSERT_OK(shardrec_comm_set_f64(mine, SHARDREC_COMM_STEP_SECONDS, 0.1));
  EXPECT_EQ(shardrec_comm_barrier(mine), SHARDREC_TIMEOUT) << shardrec_last_error();
  EXPECT_EQ(rank_of_last_error(), 1);
  EXPECT_EQ(operation_of_last_error(), "barrier");
  EXPECT_EQ(shardrec_comm_status(peer), SHARDREC_TIMEOUT);
}

TEST(Comm, OperationsTellWhoWasWaitedFor) {
  Local group;
  ASSERT_OK(shardrec_local_create(2, 2, nullptr, group.out()));
  Comm mine;
  Comm peer;
  ASSERT_OK(shardrec_comm_create_local(group, 0, nullptr, mine.out()));
  ASSERT_OK(shardrec_comm_create_local(group, 1, nullptr, peer.out()));
  const auto operations = [](shardrec_comm* comm) {
    char* text = nullptr;
    EXPECT_OK(shardrec_comm_operations_json(comm, &text));
    return take(text);
  };
  EXPECT_TRUE(contains(operations(mine), "\"operations\": []")) << operations(mine);
  ASSERT_OK(shardrec_comm_set_f64(mine, SHARDREC_COMM_STEP_SECONDS, 0.5));
  std::thread waiting([&] { EXPECT_EQ(shardrec_comm_barrier(mine), SHARDREC_TIMEOUT); });
  // Read beside the call.
  EXPECT_TRUE(eventually([&] { return contains(operations(mine), "\"waiting\""); }));
  EXPECT_TRUE(contains(operations(mine), "\"end_seconds\": null")) << operations(mine);
  waiting.join();
  const std::string after = operations(mine);
  for (const char* part : {"\"rank\": 0", "\"size\": 2", "\"operation\": \"barrier\"",
                           "\"purpose\": \"control\"", "\"state\": \"failed\"", "\"peer\": 1"}) {
    EXPECT_TRUE(contains(after, part)) << part << " in " << after;
  }
  EXPECT_EQ(shardrec_comm_operations_json(mine, nullptr), SHARDREC_INVALID_ARGUMENT);

  Local alone;
  Comm closed;
  ASSERT_OK(shardrec_local_create(1, 1, nullptr, alone.out()));
  ASSERT_OK(shardrec_comm_create_local(alone, 0, nullptr, closed.out()));
  ASSERT_OK(shardrec_comm_close(closed));
  EXPECT_TRUE(contains(operations(closed), "\"operation\": \"close\"")) << operations(closed);
}

TEST(Comm, HandlesMayGoInAnyOrder) {
  int64_t before = 0;
  ASSERT_OK(shardrec_live_objects(&before));
  for (int order = 0; order < 6; ++order) {
    Local group;
    ASSERT_OK(shardrec_local_create(2, 2, nullptr, group.out()));
    Comm comms[2];
    for (int rank = 0; rank < 2; ++rank) {
      ASSERT_OK(shardrec_comm_create_local(group, rank, nullptr, comms[rank].out()));
    }
    std::vector<int> sequence = {0, 1, 2};
    for (int i = 0; i < order; ++i) std::next_permutation(sequence.begin(), sequence.end());
    for (const int which : sequence) {
      if (which == 2) {
        shardrec_local_destroy(group.out());
      } else {
        shardrec_comm_destroy(comms[which].out());
      }
    }
  }
  int64_t after = 0;
  ASSERT_OK(shardrec_live_objects(&after));
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace shardrec::test
