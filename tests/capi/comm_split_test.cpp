// shardrec_comm_split: who is in a part, and what ends it.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "capi_test.h"

namespace shardrec::test {
namespace {

// The numbers that the ranks of a communicator bring, in its order.
std::vector<int32_t> gather(shardrec_comm* comm, int32_t mine) {
  int32_t size = 0;
  EXPECT_OK(shardrec_comm_size(comm, &size));
  std::vector<int32_t> all(static_cast<size_t>(size));
  shardrec_tensor tensor{};
  shardrec_tensor out{};
  EXPECT_OK(shardrec_tensor_vector(&mine, SHARDREC_INT32, 1, &tensor));
  EXPECT_OK(shardrec_tensor_vector(all.data(), SHARDREC_INT32, size, &out));
  EXPECT_OK(shardrec_comm_all_gather(comm, &tensor, &out));
  return all;
}

TEST(CommSplit, GroupsByColorOrdersByKeyAndLeavesOutNegativeColors) {
  run_ranks(5, [](shardrec_comm* comm, int rank) {
    Comm part;
    EXPECT_OK(shardrec_comm_split(comm, rank == 4 ? -3 : rank % 2, -rank, part.out()));
    if (rank == 4) {
      EXPECT_EQ(part.get(), nullptr);
    } else {
      EXPECT_EQ(gather(part, rank),
                rank % 2 == 0 ? (std::vector<int32_t>{2, 0}) : (std::vector<int32_t>{3, 1}));
      int32_t number = -1;
      EXPECT_OK(shardrec_comm_rank(part, &number));
      EXPECT_EQ(number, rank < 2 ? 1 : 0);
      EXPECT_OK(shardrec_comm_close(part));
    }
    EXPECT_OK(shardrec_comm_barrier(comm));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(CommSplit, NestsAndTrainsACollectionInEachPart) {
  run_ranks(4, [](shardrec_comm* comm, int rank) {
    Comm half;
    Comm alone;
    EXPECT_OK(shardrec_comm_split(comm, rank / 2, 0, half.out()));
    EXPECT_OK(shardrec_comm_split(half, rank, 0, alone.out()));
    EXPECT_EQ(gather(alone, rank), std::vector<int32_t>{rank});
    EXPECT_EQ(gather(half, rank), (std::vector<int32_t>{rank / 2 * 2, rank / 2 * 2 + 1}));
    Model model;
    EXPECT_OK(shardrec_model_create(nullptr, model.out()));
    EXPECT_OK(shardrec_model_add_table(model, "table", 6, 2, nullptr, nullptr));
    EXPECT_OK(shardrec_model_add_feature(model, 0, "id", SHARDREC_POOLING_SUM));
    Plan plan;
    EXPECT_OK(shardrec_plan_collective(half, nullptr, model, nullptr, plan.out()));
    shardrec_collection* tables = nullptr;
    EXPECT_OK(shardrec_collection_create(half, nullptr, model, plan, nullptr, &tables));
    std::vector<float> row = {static_cast<float>(rank), 1};
    shardrec_tensor values{};
    EXPECT_OK(shardrec_tensor_matrix(row.data(), SHARDREC_FLOAT32, 1, 2, &values));
    EXPECT_OK(shardrec_collection_write_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 5, 1, &values));
    EXPECT_OK(shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 5, 1, &values));
    EXPECT_EQ(row[0], static_cast<float>(rank / 2 * 2 + 1));  // the part's highest rank wrote last
    // Closing the whole ends its parts, and theirs.
    EXPECT_OK(shardrec_comm_close(comm));
    EXPECT_EQ(shardrec_comm_barrier(half), SHARDREC_CLOSED);
    EXPECT_EQ(shardrec_comm_barrier(alone), SHARDREC_CLOSED);
    EXPECT_EQ(shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 5, 1, &values),
              SHARDREC_CLOSED);
    shardrec_collection_destroy(&tables);
  });
}

TEST(CommSplit, ADeadPartHarmsNeitherTheWholeNorTheOthers) {
  run_ranks(4, [](shardrec_comm* comm, int rank) {
    Comm part;
    EXPECT_OK(shardrec_comm_split(comm, rank / 2, 0, part.out()));
    if (rank == 0) {
      EXPECT_OK(shardrec_comm_abort(part, "enough"));
    }
    if (rank < 2) {
      EXPECT_EQ(shardrec_comm_barrier(part), SHARDREC_ABORTED);
    } else {
      EXPECT_OK(shardrec_comm_barrier(part));
    }
    EXPECT_OK(shardrec_comm_barrier(comm));
    if (rank == 2) shardrec_comm_destroy(part.out());
    if (rank == 3) {
      EXPECT_EQ(shardrec_comm_barrier(part), SHARDREC_PEER_FAILED);
    }
    EXPECT_OK(shardrec_comm_barrier(comm));
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(CommSplit, AbortAndDestructionOfTheWholeEndItsParts) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    Comm part;
    Comm inner;
    EXPECT_OK(shardrec_comm_split(comm, 0, 0, part.out()));
    EXPECT_OK(shardrec_comm_split(part, 0, 0, inner.out()));
    EXPECT_OK(shardrec_comm_barrier(inner));
    if (rank == 1) {
      EXPECT_OK(shardrec_comm_abort(comm, "enough"));
    }
    EXPECT_EQ(shardrec_comm_barrier(inner), SHARDREC_ABORTED);
    EXPECT_TRUE(contains(shardrec_last_error(), "enough")) << shardrec_last_error();
  });
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    Comm part;
    Comm inner;
    EXPECT_OK(shardrec_comm_split(comm, 0, 0, part.out()));
    EXPECT_OK(shardrec_comm_split(part, 0, 0, inner.out()));
    if (rank == 1) {
      shardrec_comm* copy = comm;
      shardrec_comm_destroy(&copy);
      EXPECT_EQ(shardrec_comm_barrier(inner), SHARDREC_CLOSED) << shardrec_last_error();
    } else {
      EXPECT_EQ(shardrec_comm_barrier(inner), SHARDREC_PEER_FAILED);
    }
  });
}

TEST(CommSplit, BeginsWithTheDeadlinesOfTheWholeAndHasItsOwn) {
  run_ranks(2, [](shardrec_comm* comm, int) {
    const auto step = [](shardrec_comm* of) {
      double seconds = 0;
      EXPECT_OK(shardrec_comm_get_f64(of, SHARDREC_COMM_STEP_SECONDS, &seconds));
      return seconds;
    };
    Comm part;
    EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 41));
    EXPECT_OK(shardrec_comm_split(comm, 0, 0, part.out()));
    EXPECT_EQ(step(part), 41);
    EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 42));
    EXPECT_EQ(step(part), 41);
    EXPECT_OK(shardrec_comm_set_f64(part, SHARDREC_COMM_STEP_SECONDS, 43));
    EXPECT_EQ(step(comm), 42);
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(CommSplit, AnotherCallOfAPeerIsMismatchAndMissingOutIsRefused) {
  run_ranks(2, [](shardrec_comm* comm, int rank) {
    if (rank == 0) {
      EXPECT_EQ(shardrec_comm_split(comm, 0, 0, nullptr), SHARDREC_INVALID_ARGUMENT);
    }
    Comm part;
    EXPECT_EQ(rank == 0 ? shardrec_comm_split(comm, 0, 0, part.out()) : shardrec_comm_barrier(comm),
              SHARDREC_MISMATCH);
    EXPECT_EQ(part.get(), nullptr);
  });
}

TEST(CommSplit, OperationsOfAPartAreRecordedOnce) {
  run_ranks(2, [](shardrec_comm* comm, int) {
    Comm part;
    EXPECT_OK(shardrec_comm_split(comm, 0, 0, part.out()));
    EXPECT_OK(shardrec_comm_barrier(part));
    char* text = nullptr;
    EXPECT_OK(shardrec_comm_operations_json(part, &text));
    const std::string json = take(text);
    const size_t first = json.find("\"barrier\"");
    EXPECT_NE(first, std::string::npos) << json;
    EXPECT_EQ(json.find("\"barrier\"", first + 1), std::string::npos) << json;
    EXPECT_TRUE(contains(json, "\"size\": 2")) << json;
    EXPECT_OK(shardrec_comm_close(comm));
  });
}

TEST(CommSplit, HandlesMayGoInAnyOrderAndNothingIsLeft) {
  int64_t before = 0;
  ASSERT_OK(shardrec_live_objects(&before));
  for (int order = 0; order < 2; ++order) {
    run_ranks(2, [order](shardrec_comm* comm, int) {
      Comm part;
      EXPECT_OK(shardrec_comm_split(comm, 0, 0, part.out()));
      EXPECT_OK(shardrec_comm_barrier(part));
      shardrec_comm* copy = comm;
      if (order == 0) shardrec_comm_destroy(&copy);
      shardrec_comm_destroy(part.out());
    });
  }
  int64_t after = 0;
  ASSERT_OK(shardrec_live_objects(&after));
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace shardrec::test
