// The communicators of a mesh's groups: who is in them, and what ends them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shardrec/shardrec.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

// A rank's mesh and communicators of both of its groups, destroyed at the end where they are left.
struct Groups {
  Groups(shardrec_comm* comm, int size, const char* placement = "intra_node_sync") {
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_MESH, &options));
    SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_PLACEMENT, placement));
    SR_EXPECT_OK(shardrec_mesh_create(comm, size, options, &mesh));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_mesh_comm(mesh, SHARDREC_MESH_GROUP_SHARDING, &sharding));
    SR_EXPECT_OK(shardrec_mesh_comm(mesh, SHARDREC_MESH_GROUP_REPLICA, &replica));
  }
  ~Groups() {
    shardrec_comm_destroy(&sharding);
    shardrec_comm_destroy(&replica);
    shardrec_mesh_destroy(&mesh);
  }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  shardrec_mesh* mesh = nullptr;
  shardrec_comm* sharding = nullptr;
  shardrec_comm* replica = nullptr;
};

// The numbers that the ranks of a communicator bring, in its order.
std::vector<int32_t> gather(shardrec_comm* comm, int32_t mine) {
  int32_t size = 0;
  SR_EXPECT_OK(shardrec_comm_size(comm, &size));
  std::vector<int32_t> own{mine};
  std::vector<int32_t> all(static_cast<size_t>(size));
  const shardrec_tensor tensor = vector_of(own);
  const shardrec_tensor out = vector_of(all);
  SR_EXPECT_OK(shardrec_comm_all_gather(comm, &tensor, &out));
  return all;
}

std::string last_error() { return shardrec_last_error(); }

TEST(MeshComms, HoldTheRanksOfTheGroupsInTheirOrder) {
  run_ranks(6, 6, [](int rank, shardrec_comm* comm) {
    const Groups sync(comm, 3);  // neighbours are replicas
    EXPECT_EQ(gather(sync.sharding, rank),
              rank % 2 == 0 ? (std::vector<int32_t>{0, 2, 4}) : (std::vector<int32_t>{1, 3, 5}));
    EXPECT_EQ(gather(sync.replica, rank), (std::vector<int32_t>{rank / 2 * 2, rank / 2 * 2 + 1}));
    shardrec_place place{.struct_size = sizeof place};
    int32_t number = -1;
    SR_EXPECT_OK(shardrec_mesh_place(sync.mesh, &place));
    SR_EXPECT_OK(shardrec_comm_rank(sync.sharding, &number));
    EXPECT_EQ(number, place.sharding_rank);
    SR_EXPECT_OK(shardrec_comm_rank(sync.replica, &number));
    EXPECT_EQ(number, place.replica_rank);
    const Groups shard(comm, 3, "intra_node_shard");
    EXPECT_EQ(gather(shard.sharding, rank),
              rank < 3 ? (std::vector<int32_t>{0, 1, 2}) : (std::vector<int32_t>{3, 4, 5}));
    EXPECT_EQ(gather(shard.replica, rank), (std::vector<int32_t>{rank % 3, rank % 3 + 3}));
    shardrec_comm* part = nullptr;
    SR_EXPECT_OK(shardrec_comm_split(shard.sharding, rank % 3 == 0 ? 0 : 1, 0, &part));
    EXPECT_EQ(gather(part, rank).size(), rank % 3 == 0 ? 1U : 2U);
    shardrec_comm_destroy(&part);
    SR_EXPECT_OK(shardrec_comm_barrier(comm));
  });
}

TEST(MeshComms, TakeACollectionOfTheirOwn) {
  run_ranks(4, 4, [](int, shardrec_comm* comm) {
    const Groups groups(comm, 2);
    shardrec_model* model = nullptr;
    shardrec_plan* plan = nullptr;
    shardrec_collection* tables = nullptr;
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model));
    SR_EXPECT_OK(shardrec_model_add_table(model, "t", 9, 4, nullptr, nullptr));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    SR_EXPECT_OK(shardrec_plan_collective(groups.sharding, nullptr, model, nullptr, &plan));
    SR_EXPECT_OK(
        shardrec_collection_create(groups.sharding, nullptr, model, plan, nullptr, &tables));
    std::vector<float> values(36);
    const shardrec_tensor into = matrix(values.data(), 9, 4);
    SR_EXPECT_OK(shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, 9, &into));
    EXPECT_NE(values[35], 0);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
  });
}

TEST(MeshComms, EndAloneAndLeaveTheMeshAndTheOthersAlive) {
  run_ranks(4, 4, [](int rank, shardrec_comm* comm) {
    Groups groups(comm, 2, "intra_node_shard");
    if (rank == 0) {
      SR_EXPECT_OK(shardrec_comm_abort(groups.sharding, "enough"));
    }
    EXPECT_EQ(shardrec_comm_barrier(groups.sharding), rank < 2 ? SHARDREC_ABORTED : SHARDREC_OK);
    SR_EXPECT_OK(shardrec_comm_barrier(groups.replica));
    SR_EXPECT_OK(shardrec_comm_close(groups.replica));
    EXPECT_EQ(shardrec_comm_barrier(groups.replica), SHARDREC_CLOSED);
    if (rank == 2) shardrec_comm_destroy(&groups.sharding);
    if (rank == 3) {
      EXPECT_EQ(shardrec_comm_barrier(groups.sharding), SHARDREC_PEER_FAILED);
    }
    // The mesh makes others.
    shardrec_comm* again = nullptr;
    SR_EXPECT_OK(shardrec_mesh_comm(groups.mesh, SHARDREC_MESH_GROUP_SHARDING, &again));
    SR_EXPECT_OK(shardrec_comm_barrier(again));
    shardrec_comm_destroy(&again);
    SR_EXPECT_OK(shardrec_comm_barrier(comm));
  });
}

TEST(MeshComms, EndWithTheCommunicatorOfTheMesh) {
  run_ranks(4, 4, [](int rank, shardrec_comm* comm) {
    const Groups groups(comm, 2);
    SR_EXPECT_OK(shardrec_comm_barrier(comm));  // all have theirs
    if (rank == 3) {
      SR_EXPECT_OK(shardrec_comm_abort(comm, "enough"));
    }
    EXPECT_EQ(shardrec_comm_barrier(comm), SHARDREC_ABORTED);  // heard of
    EXPECT_EQ(shardrec_comm_barrier(groups.sharding), SHARDREC_ABORTED);
    EXPECT_NE(last_error().find("enough"), std::string::npos) << last_error();
    EXPECT_EQ(shardrec_comm_barrier(groups.replica), SHARDREC_ABORTED);
    shardrec_comm* out = nullptr;
    EXPECT_EQ(shardrec_mesh_comm(groups.mesh, SHARDREC_MESH_GROUP_SHARDING, &out),
              SHARDREC_ABORTED);
    EXPECT_EQ(out, nullptr);
  });
  run_ranks(2, 2, [](int, shardrec_comm* comm) {
    const Groups groups(comm, 2);
    SR_EXPECT_OK(shardrec_comm_close(comm));
    EXPECT_EQ(shardrec_comm_barrier(groups.sharding), SHARDREC_CLOSED);
    EXPECT_EQ(shardrec_comm_barrier(groups.replica), SHARDREC_CLOSED);
    shardrec_comm* out = nullptr;
    EXPECT_EQ(shardrec_mesh_comm(groups.mesh, SHARDREC_MESH_GROUP_REPLICA, &out), SHARDREC_CLOSED);
  });
  run_ranks(2, 2, [](int rank, shardrec_comm* comm) {
    const Groups groups(comm, 2);
    SR_EXPECT_OK(shardrec_comm_barrier(comm));  // all have theirs
    if (rank == 1) {
      shardrec_comm* copy = comm;
      shardrec_comm_destroy(&copy);
      EXPECT_EQ(shardrec_comm_barrier(groups.sharding), SHARDREC_CLOSED) << last_error();
    } else {
      EXPECT_EQ(shardrec_comm_barrier(groups.sharding), SHARDREC_PEER_FAILED) << last_error();
    }
  });
}

TEST(MeshComms, OutliveTheMeshsHandle) {
  int64_t before = 0;
  SR_OK(shardrec_live_objects(&before));
  run_ranks(4, 4, [](int rank, shardrec_comm* comm) {
    Groups groups(comm, 2);
    shardrec_mesh_destroy(&groups.mesh);
    SR_EXPECT_OK(shardrec_comm_barrier(comm));  // all have
    EXPECT_EQ(gather(groups.sharding, rank), (std::vector<int32_t>{rank % 2, rank % 2 + 2}));
    SR_EXPECT_OK(shardrec_comm_close(groups.sharding));
    SR_EXPECT_OK(shardrec_comm_barrier(groups.replica));
    SR_EXPECT_OK(shardrec_comm_barrier(comm));
  });
  int64_t after = 0;
  SR_OK(shardrec_live_objects(&after));
  EXPECT_EQ(after, before);
}

TEST(MeshComms, BeginWithTheDeadlinesOfTheMeshsCommunicator) {
  run_ranks(2, 2, [](int, shardrec_comm* comm) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 41));
    const Groups groups(comm, 2);
    double seconds = 0;
    SR_EXPECT_OK(shardrec_comm_get_f64(groups.sharding, SHARDREC_COMM_STEP_SECONDS, &seconds));
    EXPECT_EQ(seconds, 41);
    SR_EXPECT_OK(shardrec_comm_set_f64(groups.sharding, SHARDREC_COMM_STEP_SECONDS, 43));
    SR_EXPECT_OK(shardrec_comm_get_f64(comm, SHARDREC_COMM_STEP_SECONDS, &seconds));
    EXPECT_EQ(seconds, 41);
  });
}

TEST(MeshComms, OtherKindsOfGroupsAreAMismatchAndMissingOutIsRefused) {
  run_ranks(4, 4, [](int rank, shardrec_comm* comm) {
    const Groups groups(comm, 2);
    SR_EXPECT_OK(shardrec_comm_barrier(comm));  // all have theirs
    EXPECT_EQ(shardrec_mesh_comm(groups.mesh, SHARDREC_MESH_GROUP_SHARDING, nullptr),
              SHARDREC_INVALID_ARGUMENT);
    shardrec_comm* out = nullptr;
    EXPECT_EQ(shardrec_mesh_comm(nullptr, SHARDREC_MESH_GROUP_SHARDING, &out),
              SHARDREC_INVALID_HANDLE);
    EXPECT_EQ(rank == 3 ? shardrec_mesh_comm(groups.mesh, SHARDREC_MESH_GROUP_REPLICA, &out)
                        : shardrec_mesh_comm(groups.mesh, SHARDREC_MESH_GROUP_SHARDING, &out),
              SHARDREC_MISMATCH);
    EXPECT_NE(last_error().find("mesh_comm (replica group)"), std::string::npos) << last_error();
    EXPECT_EQ(out, nullptr);
  });
}

}  // namespace
}  // namespace shardrec::test
