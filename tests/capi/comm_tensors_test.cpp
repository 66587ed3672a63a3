// Collectives on tensors through the C API: what they accept, what they refuse, and what is left of
// the communicator then. Values and engines: tests/conformance/tensors_test.cpp.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "capi_test.h"

namespace shardrec::test {
namespace {

template <class T>
constexpr shardrec_dtype kDtype = std::is_same_v<T, float>     ? SHARDREC_FLOAT32
                                  : std::is_same_v<T, double>  ? SHARDREC_FLOAT64
                                  : std::is_same_v<T, int32_t> ? SHARDREC_INT32
                                                               : SHARDREC_INT64;

template <class T>
shardrec_tensor view(std::vector<T>& data) {
  shardrec_tensor tensor{};
  EXPECT_OK(
      shardrec_tensor_vector(data.data(), kDtype<T>, static_cast<int64_t>(data.size()), &tensor));
  return tensor;
}

template <class T>
shardrec_tensor matrix(std::vector<T>& data, int64_t rows, int64_t cols, int64_t stride = 0) {
  shardrec_tensor tensor{};
  EXPECT_OK(shardrec_tensor_matrix(data.data(), kDtype<T>, rows, cols, &tensor));
  if (stride != 0) {
    tensor.stride[0] = stride;
    tensor.stride[1] = 1;
  }
  return tensor;
}

TEST(CommTensors, BroadcastCopiesTheRootsRowsAndLeavesWhatIsBetweenThem) {
  run_ranks(3, [](shardrec_comm* comm, int rank) {
    std::vector<int32_t> data(12, -1);
    for (int row = 0; row < 3; ++row) {
      for (int col = 0; col < 2; ++col) data[static_cast<size_t>(row * 4 + col)] = rank * 10 + row;
    }
    const shardrec_tensor rows = matrix(data, 3, 2, 4);
    EXPECT_OK(shardrec_comm_broadcast(comm, &rows, 2));
    EXPECT_EQ(data, (std::vector<int32_t>{20, 20, -1, -1, 21, 21, -1, -1, 22, 22, -1, -1}));
    shardrec_tensor scalar{&data[0], SHARDREC_DEVICE_CPU, 0, SHARDREC_INT32, 0, {}, {}};
    data[0] = rank;
    EXPECT_OK(shardrec_comm_broadcast(comm, &scalar, 1));
    EXPECT_EQ(data[0], 1);
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(CommTensors, AllGatherTakesAColumnOfAMatrix) {
  run_ranks(3, [](shardrec_comm* comm, int rank) {
    std::vector<double> table = {0.5 + rank, -1, 1.5 + rank, -1};
    shardrec_tensor column = view(table);
    column.shape[0] = 2;
    column.stride[0] = 2;
    std::vector<double> all(6);
    const shardrec_tensor out = matrix(all, 3, 2);
    EXPECT_OK(shardrec_comm_all_gather(comm, &column, &out));
    EXPECT_EQ(all, (std::vector<double>{0.5, 1.5, 1.5, 2.5, 2.5, 3.5}));
    std::vector<double> none;
    const shardrec_tensor empty = view(none);
    EXPECT_OK(shardrec_comm_all_gather(comm, &empty, &empty));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(CommTensors, ReduceScatterLeavesEachRankItsPart) {
  run_ranks(3, [](shardrec_comm* comm, int rank) {
    std::vector<float> data = {1, 2, 3, 4, 5, 6};
    for (float& x : data) x *= static_cast<float>(rank + 1);
    const shardrec_tensor tensor = view(data);
    std::vector<float> part(2);
    const shardrec_tensor out = view(part);
    EXPECT_OK(shardrec_comm_reduce_scatter(comm, &tensor, &out, SHARDREC_REDUCTION_MEAN));
    const auto first = static_cast<float>(2 * (2 * rank + 1));
    EXPECT_EQ(part, (std::vector<float>{first, first + 2}));
    // In place: a part of the input is the output.
    shardrec_tensor inside = tensor;
    inside.shape[0] = 2;
    EXPECT_OK(shardrec_comm_reduce_scatter(comm, &tensor, &inside, SHARDREC_REDUCTION_MAX));
    EXPECT_EQ(data[0], static_cast<float>(3 * (2 * rank + 1)));
    EXPECT_EQ(data[1], static_cast<float>(3 * (2 * rank + 2)));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(CommTensors, AllToAllSendsEqualOrCountedRows) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    std::vector<int64_t> data = {10 * rank + 1, 10 * rank + 2, 10 * rank + 3, 10 * rank + 4};
    const shardrec_tensor tensor = matrix(data, 4, 1);
    std::vector<int64_t> got(4);
    const shardrec_tensor out = matrix(got, 4, 1);
    EXPECT_OK(shardrec_comm_all_to_all(comm, &tensor, nullptr, &out, nullptr));
    EXPECT_EQ(got, rank == 0 ? (std::vector<int64_t>{1, 2, 11, 12})
                             : (std::vector<int64_t>{3, 4, 13, 14}));
    // Rank 0 keeps one row and sends three; rank 1 sends all to rank 0. One side counts, where the
    // other's parts are equal anyway.
    std::vector<int64_t> sent = rank == 0 ? std::vector<int64_t>{1, 3} : std::vector<int64_t>{4, 0};
    std::vector<int64_t> received =
        rank == 0 ? std::vector<int64_t>{1, 4} : std::vector<int64_t>{3, 0};
    got.assign(rank == 0 ? 5 : 3, 0);
    const shardrec_tensor uneven = matrix(got, rank == 0 ? 5 : 3, 1);
    const shardrec_tensor send_counts = view(sent);
    const shardrec_tensor receive_counts = view(received);
    EXPECT_OK(shardrec_comm_all_to_all(comm, &tensor, &send_counts, &uneven, &receive_counts));
    EXPECT_EQ(got, rank == 0 ? (std::vector<int64_t>{1, 11, 12, 13, 14})
                             : (std::vector<int64_t>{2, 3, 4}));
    std::vector<int64_t> equal = {2, 2};
    const shardrec_tensor as_counts = view(equal);
    got.assign(4, 0);
    const shardrec_tensor again = matrix(got, 4, 1);
    EXPECT_OK(shardrec_comm_all_to_all(comm, &tensor, rank == 0 ? &as_counts : nullptr, &again,
                                       rank == 1 ? &as_counts : nullptr));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

// Refused by this rank alone: the others wait, and the next good call serves them.
TEST(CommTensors, MalformedCallsAreRefusedByTheirRankAndHarmNobody) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    std::vector<float> four(4);
    std::vector<float> two(2);
    std::vector<double> doubles(2);
    std::vector<int64_t> counts = {1, 3};
    std::vector<int64_t> negative = {-1, 5};
    std::vector<int64_t> large = {std::numeric_limits<int64_t>::max(), 5};
    std::vector<int64_t> three = {1, 1, 2};
    std::vector<int32_t> narrow = {2, 2};
    const shardrec_tensor tensor = view(four);
    const shardrec_tensor half = view(two);
    const shardrec_tensor wide = view(doubles);
    const shardrec_tensor good_counts = view(counts);
    const shardrec_tensor negative_counts = view(negative);
    const shardrec_tensor large_counts = view(large);
    const shardrec_tensor three_counts = view(three);
    const shardrec_tensor narrow_counts = view(narrow);
    shardrec_tensor overlapping = matrix(four, 2, 2, 1);
    shardrec_tensor transposed = matrix(four, 2, 2, 1);
    transposed.stride[1] = 2;
    shardrec_tensor half_precision = half;
    half_precision.dtype = SHARDREC_FLOAT16;
    shardrec_tensor odd = tensor;
    odd.shape[0] = 3;
    const shardrec_tensor by_rows = matrix(four, 2, 2);
    if (rank == 1) {
      expect_refused({
          {"no tensor", [&] { return shardrec_comm_broadcast(comm, nullptr, 0); },
           SHARDREC_INVALID_ARGUMENT, "tensor"},
          {"root -1", [&] { return shardrec_comm_broadcast(comm, &tensor, -1); },
           SHARDREC_INVALID_ARGUMENT, "0 to 1"},
          {"root 2", [&] { return shardrec_comm_broadcast(comm, &tensor, 2); },
           SHARDREC_INVALID_ARGUMENT, "root is 2"},
          {"rows overlap", [&] { return shardrec_comm_broadcast(comm, &overlapping, 0); },
           SHARDREC_INVALID_ARGUMENT, "dimension 0"},
          {"transposed", [&] { return shardrec_comm_broadcast(comm, &transposed, 0); },
           SHARDREC_INVALID_ARGUMENT, "dimension 1"},
          {"dtypes differ", [&] { return shardrec_comm_all_gather(comm, &half, &wide); },
           SHARDREC_INVALID_ARGUMENT, "out has dtype float64"},
          {"out too small", [&] { return shardrec_comm_all_gather(comm, &half, &half); },
           SHARDREC_INVALID_ARGUMENT, "out has 2 elements"},
          {"no out", [&] { return shardrec_comm_all_gather(comm, &half, nullptr); },
           SHARDREC_INVALID_ARGUMENT, "out"},
          {"parts",
           [&] { return shardrec_comm_reduce_scatter(comm, &odd, &half, SHARDREC_REDUCTION_SUM); },
           SHARDREC_INVALID_ARGUMENT, "tensor has 3 elements"},
          {"float16",
           [&] {
             return shardrec_comm_reduce_scatter(comm, &half_precision, &half_precision,
                                                 SHARDREC_REDUCTION_SUM);
           },
           SHARDREC_INVALID_ARGUMENT, "float16"},
          {"reduction",
           [&] {
             return shardrec_comm_reduce_scatter(comm, &tensor, &half,
                                                 static_cast<shardrec_reduction>(9));
           },
           SHARDREC_INVALID_ARGUMENT, "reduction"},
          {"equal parts of 3",
           [&] { return shardrec_comm_all_to_all(comm, &odd, nullptr, &tensor, nullptr); },
           SHARDREC_INVALID_ARGUMENT, "send_counts"},
          {"row length",
           [&] { return shardrec_comm_all_to_all(comm, &by_rows, nullptr, &tensor, nullptr); },
           SHARDREC_INVALID_ARGUMENT, "rows of 1"},
          {"negative count",
           [&] {
             return shardrec_comm_all_to_all(comm, &tensor, &negative_counts, &tensor, nullptr);
           },
           SHARDREC_INVALID_ARGUMENT, "send_counts[0] is -1"},
          {"large count",
           [&] { return shardrec_comm_all_to_all(comm, &tensor, nullptr, &tensor, &large_counts); },
           SHARDREC_INVALID_ARGUMENT, "receive_counts[0]"},
          {"three counts",
           [&] { return shardrec_comm_all_to_all(comm, &tensor, &three_counts, &tensor, nullptr); },
           SHARDREC_INVALID_ARGUMENT, "send_counts"},
          {"int32 counts",
           [&] {
             return shardrec_comm_all_to_all(comm, &tensor, &narrow_counts, &tensor, nullptr);
           },
           SHARDREC_INVALID_ARGUMENT, "int64"},
          {"counts of fewer rows",
           [&] { return shardrec_comm_all_to_all(comm, &tensor, nullptr, &odd, &good_counts); },
           SHARDREC_INVALID_ARGUMENT, "receive_counts[1] is 3"},
      });
    }
    EXPECT_OK(shardrec_comm_all_gather(comm, &half, &tensor));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(CommTensors, CountsThatDoNotMeetAreMismatchOnAllAndTheCommunicatorLives) {
  run_ranks(3, [](shardrec_comm* comm, int rank) {
    std::vector<float> data = {1, 2, 3};
    std::vector<float> got = {7, 7, 7};
    const shardrec_tensor tensor = view(data);
    const shardrec_tensor out = view(got);
    std::vector<int64_t> sent = {0, 2, 1};
    const shardrec_tensor counts = view(sent);
    EXPECT_EQ(shardrec_comm_all_to_all(comm, &tensor, rank == 1 ? &counts : nullptr, &out, nullptr),
              SHARDREC_DISAGREEMENT);
    EXPECT_TRUE(contains(shardrec_last_error(), "rank 1 has 0 rows for rank 0"))
        << shardrec_last_error();
    int64_t failed_rank = -1;
    EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank), SHARDREC_OK);
    EXPECT_EQ(failed_rank, 1);
    EXPECT_EQ(got, (std::vector<float>{7, 7, 7}));
    EXPECT_OK(shardrec_comm_status(comm));
    EXPECT_OK(shardrec_comm_all_to_all(comm, &tensor, nullptr, &out, nullptr));
    EXPECT_EQ(got, (std::vector<float>(3, static_cast<float>(rank + 1))));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(CommTensors, DifferentCallsAreMismatchOnEveryRank) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    std::vector<float> data(2);
    std::vector<float> all(4);
    const shardrec_tensor tensor = view(data);
    const shardrec_tensor out = view(all);
    EXPECT_EQ(rank == 0 ? shardrec_comm_broadcast(comm, &tensor, 0)
                        : shardrec_comm_all_gather(comm, &tensor, &out),
              SHARDREC_MISMATCH);
    EXPECT_TRUE(contains(shardrec_last_error(), "broadcast")) << shardrec_last_error();
    EXPECT_TRUE(contains(shardrec_last_error(), "all_gather")) << shardrec_last_error();
    EXPECT_EQ(shardrec_comm_status(comm), SHARDREC_MISMATCH);
  });
}

TEST(CommTensors, ARankThatNeverComesIsTimeoutNamingTheOperation) {
  Local group;
  ASSERT_OK(shardrec_local_create(2, 2, nullptr, group.out()));
  Comm mine;
  Comm peer;
  ASSERT_OK(shardrec_comm_create_local(group, 0, nullptr, mine.out()));
  ASSERT_OK(shardrec_comm_create_local(group, 1, nullptr, peer.out()));
  ASSERT_OK(shardrec_comm_set_f64(mine, SHARDREC_COMM_STEP_SECONDS, 0.1));
  std::vector<float> data(2);
  const shardrec_tensor tensor = view(data);
  EXPECT_EQ(shardrec_comm_all_to_all(mine, &tensor, nullptr, &tensor, nullptr), SHARDREC_TIMEOUT);
  EXPECT_TRUE(contains(shardrec_last_error(), "all_to_all")) << shardrec_last_error();
}

}  // namespace
}  // namespace shardrec::test
