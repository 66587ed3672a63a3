// Ranks as threads, over the C API.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "shardrec/shardrec.h"

namespace shardrec::test {

#define SR_OK(call) ASSERT_EQ((call), SHARDREC_OK) << shardrec_last_error()
#define SR_EXPECT_OK(call) EXPECT_EQ((call), SHARDREC_OK) << shardrec_last_error()

// Runs body(rank, comm) on `ranks` threads, each with its communicator; closes them in order where
// the body returned true.
inline void run_ranks(int ranks, int ranks_per_node,
                      const std::function<void(int rank, shardrec_comm* comm)>& body) {
  shardrec_local* group = nullptr;
  SR_OK(shardrec_local_create(ranks, ranks_per_node, nullptr, &group));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      shardrec_comm* comm = nullptr;
      ASSERT_EQ(shardrec_comm_create_local(group, rank, nullptr, &comm), SHARDREC_OK);
      body(rank, comm);
      if (!::testing::Test::HasFatalFailure()) {
        if (shardrec_comm_status(comm) == SHARDREC_OK) shardrec_comm_close(comm);
      }
      shardrec_comm_destroy(&comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
  shardrec_local_destroy(&group);
}

inline shardrec_tensor matrix(float* data, int64_t rows, int64_t cols) {
  shardrec_tensor tensor{};
  EXPECT_EQ(shardrec_tensor_matrix(data, SHARDREC_FLOAT32, rows, cols, &tensor), SHARDREC_OK);
  return tensor;
}

template <class T>
shardrec_tensor vector_of(std::vector<T>& data) {
  constexpr shardrec_dtype dtype = std::is_same_v<T, int32_t>   ? SHARDREC_INT32
                                   : std::is_same_v<T, int64_t> ? SHARDREC_INT64
                                                                : SHARDREC_FLOAT32;
  shardrec_tensor tensor{};
  EXPECT_EQ(shardrec_tensor_vector(data.data(), dtype, static_cast<int64_t>(data.size()), &tensor),
            SHARDREC_OK);
  return tensor;
}

}  // namespace shardrec::test
