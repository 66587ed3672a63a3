// shardrec_plan_collective on a mesh: one plan for all replicas, which replicates only the tables that are to be.
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>

#include "shardrec/shardrec.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

// A rank's mesh of sharding groups of two, and a model of two tables.
struct Rank {
  explicit Rank(shardrec_comm* its_comm, const char* placement = "intra_node_sync",
                const char* allowed = "all")
      : comm(its_comm) {
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_MESH, &options));
    SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_PLACEMENT, placement));
    SR_EXPECT_OK(shardrec_mesh_create(comm, 2, options, &mesh));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &options));
    SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_ALLOWED_SHARDING, allowed));
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model));
    SR_EXPECT_OK(shardrec_model_add_table(model, "small", 10, 8, options, nullptr));
    SR_EXPECT_OK(shardrec_model_add_table(model, "large", 10000, 8, nullptr, nullptr));
    SR_EXPECT_OK(shardrec_model_add_feature(model, 0, "f", SHARDREC_POOLING_SUM));
    shardrec_options_destroy(&options);
  }
  ~Rank() {
    shardrec_plan_destroy(&plan);
    shardrec_model_destroy(&model);
    shardrec_mesh_destroy(&mesh);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  shardrec_status make(const char* sharding) {
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_EXPECT_OK(shardrec_options_set_text(options, SHARDREC_OPTION_SHARDING, sharding));
    const shardrec_status status = shardrec_plan_collective(comm, mesh, model, options, &plan);
    shardrec_options_destroy(&options);
    return status;
  }
  std::string json() const {
    char* text = nullptr;
    SR_EXPECT_OK(shardrec_plan_to_json(plan, &text));
    const std::string copy = text == nullptr ? "" : text;
    shardrec_text_free(text);
    return copy;
  }

  shardrec_comm* comm;
  shardrec_mesh* mesh = nullptr;
  shardrec_model* model = nullptr;
  shardrec_plan* plan = nullptr;
};

TEST(PlanOnMesh, IsTheSameOnAllRanksForTheShardingGroupWithoutReplicatedTables) {
  for (const char* placement : {"intra_node_sync", "intra_node_shard"}) {
    for (const char* sharding : {"auto", "mixed", "row_wise"}) {
      SCOPED_TRACE(std::string(placement) + " " + sharding);
      std::mutex mutex;
      std::set<std::string> plans;
      run_ranks(4, 2, [&](int, shardrec_comm* comm) {
        Rank rank(comm, placement);
        ASSERT_EQ(rank.make(sharding), SHARDREC_OK) << shardrec_last_error();
        shardrec_collection* tables = nullptr;
        EXPECT_EQ(
            shardrec_collection_create(comm, rank.mesh, rank.model, rank.plan, nullptr, &tables),
            SHARDREC_OK)
            << shardrec_last_error();
        shardrec_collection_destroy(&tables);
        const std::lock_guard lock(mutex);
        plans.insert(rank.json());
      });
      ASSERT_EQ(plans.size(), 1U);
      EXPECT_NE(plans.begin()->find("\"ranks\": 2,"), std::string::npos) << *plans.begin();
      EXPECT_EQ(plans.begin()->find("\"replicated\": true"), std::string::npos) << *plans.begin();
      const bool together = std::string(placement) == "intra_node_shard";
      EXPECT_NE(plans.begin()->find(together ? "\"ranks_per_node\": 2" : "\"ranks_per_node\": 1"),
                std::string::npos)
          << *plans.begin();
    }
  }
}

TEST(PlanOnMesh, HasANodePerRankWhereShardingGroupsLieDifferently) {
  // Nodes {0, 1, 2} and {3}: the group {0, 1} is one node, {2, 3} is two.
  run_ranks(4, 3, [&](int, shardrec_comm* comm) {
    Rank rank(comm, "intra_node_shard");
    ASSERT_EQ(rank.make("row_wise"), SHARDREC_OK) << shardrec_last_error();
    EXPECT_NE(rank.json().find("\"ranks_per_node\": 1"), std::string::npos) << rank.json();
  });
}

TEST(PlanOnMesh, ReplicatesWhatIsToBeOrMayNotBeCut) {
  run_ranks(4, 2, [&](int, shardrec_comm* comm) {
    const auto count_replicated = [](const Rank& rank) {
      int count = 0;
      for (const int32_t table : {0, 1}) {
        int32_t boxes = -1;
        SR_EXPECT_OK(shardrec_plan_box_count(rank.plan, table, &boxes));
        count += boxes == 0 ? 1 : 0;
      }
      return count;
    };
    Rank all(comm);
    ASSERT_EQ(all.make("data_parallel"), SHARDREC_OK) << shardrec_last_error();
    EXPECT_EQ(count_replicated(all), 2);
    Rank only(comm, "intra_node_sync", "data_parallel");
    ASSERT_EQ(only.make("auto"), SHARDREC_OK) << shardrec_last_error();
    EXPECT_EQ(count_replicated(only), 1);
    shardrec_collection* tables = nullptr;
    EXPECT_EQ(shardrec_collection_create(comm, only.mesh, only.model, only.plan, nullptr, &tables),
              SHARDREC_OK)
        << shardrec_last_error();
    shardrec_collection_destroy(&tables);
  });
}

TEST(PlanOnMesh, WhatDiffersIsAMismatchNamingTheRankOfTheWholeMesh) {
  run_ranks(4, 2, [&](int number, shardrec_comm* comm) {
    Rank rank(comm);
    EXPECT_EQ(rank.make(number == 3 ? "row_wise" : "table_wise"), SHARDREC_DISAGREEMENT);
    int64_t failed_rank = -1;
    EXPECT_EQ(shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank), SHARDREC_OK);
    EXPECT_EQ(failed_rank, 3);
    EXPECT_EQ(rank.make("table_wise"), SHARDREC_OK) << shardrec_last_error();
  });
}

TEST(PlanOnMesh, AMeshOnSomeRanksOnlyIsADisagreementOnAll) {
  run_ranks(4, 2, [&](int number, shardrec_comm* comm) {
    Rank rank(comm);
    shardrec_plan* out = nullptr;
    EXPECT_EQ(shardrec_plan_collective(comm, number == 2 ? nullptr : rank.mesh, rank.model, nullptr,
                                       &out),
              SHARDREC_DISAGREEMENT);
    EXPECT_NE(
        std::string(shardrec_last_error()).find("the mesh is NULL on rank 2 and given on rank 0"),
        std::string::npos)
        << shardrec_last_error();
    EXPECT_EQ(out, nullptr);
    EXPECT_EQ(rank.make("table_wise"), SHARDREC_OK) << shardrec_last_error();
  });
}

TEST(PlanOnMesh, AMeshOfAnotherCommunicatorOnOneRankIsEveryRanksError) {
  run_ranks(4, 2, [&](int number, shardrec_comm* comm) {
    SR_EXPECT_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
    shardrec_comm* other = nullptr;
    SR_EXPECT_OK(shardrec_comm_split(comm, 0, 0, &other));
    {
      Rank rank(comm);
      const Rank of_other(other);
      shardrec_plan* out = nullptr;
      EXPECT_EQ(shardrec_plan_collective(comm, number == 2 ? of_other.mesh : rank.mesh, rank.model,
                                         nullptr, &out),
                SHARDREC_INVALID_ARGUMENT);
      const std::string sentence = shardrec_last_error();
      EXPECT_NE(sentence.find("rank 2: the mesh was made of another communicator"),
                std::string::npos)
          << sentence;
      EXPECT_EQ(rank.make("table_wise"), SHARDREC_OK) << shardrec_last_error();
    }
    shardrec_comm_destroy(&other);
  });
}

TEST(PlanOnMesh, NeedsAMeshThatLives) {
  run_ranks(2, 2, [&](int, shardrec_comm* comm) {
    Rank rank(comm);
    shardrec_plan* out = nullptr;
    EXPECT_EQ(shardrec_plan_collective(nullptr, rank.mesh, rank.model, nullptr, &out),
              SHARDREC_INVALID_HANDLE);
    shardrec_comm* other = nullptr;
    SR_EXPECT_OK(shardrec_comm_split(comm, 0, 0, &other));
    EXPECT_EQ(shardrec_plan_collective(other, rank.mesh, rank.model, nullptr, &out),
              SHARDREC_INVALID_ARGUMENT);
    shardrec_collection* tables = nullptr;
    EXPECT_EQ(shardrec_collection_create(other, rank.mesh, rank.model, rank.plan, nullptr, &tables),
              SHARDREC_INVALID_ARGUMENT);
    shardrec_comm_destroy(&other);
    SR_EXPECT_OK(shardrec_comm_close(comm));
    EXPECT_EQ(rank.make("auto"), SHARDREC_CLOSED) << shardrec_last_error();
  });
}

}  // namespace
}  // namespace shardrec::test
