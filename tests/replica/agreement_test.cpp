// Replicas that train by other rules than each other are not averaged: what differs is a mismatch on
// every rank of the mesh, and everything is as before.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "replica/mesh_rank.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

constexpr int kRanks = 4;
constexpr int kGroup = 2;
// Replicas are interleaved: ranks 1 and 3 hold replica 1, so that its ranks agree with each other.
int replica_of(int rank) { return rank % kGroup; }

// The last error is a mismatch that names rank 1, the lowest of replica 1, and all of the words.
void expect_mismatch(shardrec_status status, const std::vector<std::string>& words) {
  const std::string sentence = shardrec_last_error();
  EXPECT_EQ(status, SHARDREC_DISAGREEMENT) << sentence;
  int64_t failed_rank = -1;
  shardrec_last_error_i64(SHARDREC_ERROR_RANK, &failed_rank);
  EXPECT_EQ(failed_rank, 1) << sentence;
  for (const std::string& word : words) {
    EXPECT_NE(sentence.find(word), std::string::npos) << word << " is not in: " << sentence;
  }
}

struct OptionCase {
  const char* name;
  shardrec_option option;
  double value;
  bool real = false;  // set_f64, else set_i64
};

class ReplicaOptions : public ::testing::TestWithParam<OptionCase> {};

TEST_P(ReplicaOptions, ThatDifferAreAMismatchOnAllRanks) {
  const OptionCase given = GetParam();
  run_ranks(kRanks, kGroup, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    MeshRank other(comm, {.options = [&](shardrec_options* options) {
                     if (replica_of(rank) == 0) return;
                     if (given.real) {
                       SR_OK(shardrec_options_set_f64(options, given.option, given.value));
                     } else {
                       SR_OK(shardrec_options_set_i64(options, given.option,
                                                      static_cast<int64_t>(given.value)));
                     }
                   }});
    expect_mismatch(other.create_collection(), {given.name});
    EXPECT_EQ(other.tables(), nullptr);
    MeshRank again(comm, {});
    SR_OK(again.create_collection(other.mesh()));
    again.create_lookup();
    again.step(rank, 1);
    SR_EXPECT_OK(shardrec_collection_sync_replicas(again.tables()));
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, ReplicaOptions,
    ::testing::Values(
        OptionCase{"SEED", SHARDREC_OPTION_SEED, 6},
        OptionCase{"GRADIENT_DIVISOR", SHARDREC_OPTION_GRADIENT_DIVISOR, SHARDREC_DIVISOR_NONE},
        OptionCase{"GRADIENT_DIVISOR_VALUE", SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE, 3, true},
        OptionCase{"OUTPUT_DTYPE", SHARDREC_OPTION_OUTPUT_DTYPE, SHARDREC_BFLOAT16},
        OptionCase{"FORWARD_COMPRESSION", SHARDREC_OPTION_FORWARD_COMPRESSION,
                   SHARDREC_COMPRESSION_FLOAT16},
        OptionCase{"BACKWARD_COMPRESSION", SHARDREC_OPTION_BACKWARD_COMPRESSION,
                   SHARDREC_COMPRESSION_BFLOAT16},
        OptionCase{"NON_FINITE", SHARDREC_OPTION_NON_FINITE, SHARDREC_NON_FINITE_SKIP},
        OptionCase{"REPLICA_SYNC", SHARDREC_OPTION_REPLICA_SYNC, SHARDREC_REPLICA_SYNC_FULL},
        OptionCase{"SYNC_EVERY", SHARDREC_OPTION_SYNC_EVERY, 3}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ReplicaOptions, ThatChangeNoNumberMayDiffer) {
  run_ranks(kRanks, kGroup, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_SETUP_SECONDS, 20));
    MeshRank one(comm, {.options = [&](shardrec_options* options) {
                   if (replica_of(rank) == 0) return;
                   SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_THREADS, 2));
                   SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_LOOKUPS, 3));
                   SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DEDUPLICATE, 1));
                   SR_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_HIERARCHICAL, 1));
                 }});
    EXPECT_EQ(one.create_collection(), SHARDREC_OK) << shardrec_last_error();
  });
}

struct SettingCase {
  const char* name;
  std::vector<std::string> words;  // of the error
  // Gives replica 1 another setting than replica 0, or the same again.
  std::function<void(MeshRank&, bool other)> set;
};

class ReplicaSettings : public ::testing::TestWithParam<SettingCase> {};

TEST_P(ReplicaSettings, ThatDifferAreAMismatchBeforeAnythingIsAveraged) {
  const SettingCase& given = GetParam();
  run_ranks(kRanks, kGroup, [&](int rank, shardrec_comm* comm) {
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 20));
    MeshRank one(comm, {});
    one.create();
    SR_OK(one.status());
    one.step(rank, 1.0F + static_cast<float>(replica_of(rank)));
    given.set(one, replica_of(rank) == 1);
    const auto weights = one.read(SHARDREC_TABLE_WEIGHTS);
    const auto sums = one.read(SHARDREC_TABLE_STATE);
    expect_mismatch(shardrec_collection_sync_replicas(one.tables()), given.words);
    EXPECT_EQ(one.read(SHARDREC_TABLE_WEIGHTS), weights);
    EXPECT_EQ(one.read(SHARDREC_TABLE_STATE), sums);
    given.set(one, false);
    EXPECT_EQ(shardrec_collection_sync_replicas(one.tables()), SHARDREC_OK)
        << shardrec_last_error();
    EXPECT_NE(one.read(SHARDREC_TABLE_WEIGHTS), weights);
    EXPECT_EQ(shardrec_comm_status(comm), SHARDREC_OK);
  });
}

INSTANTIATE_TEST_SUITE_P(
    All, ReplicaSettings,
    ::testing::Values(SettingCase{"LearningRate",
                                  {"learning rate", "table \"t\""},
                                  [](MeshRank& one, bool other) {
                                    SR_OK(shardrec_collection_set_learning_rate(
                                        one.tables(), SHARDREC_ALL_TABLES, other ? 0.2 : 0.1));
                                  }},
                      SettingCase{"TableLearningRate",
                                  {"learning rate", "table \"t\""},
                                  [](MeshRank& one, bool other) {
                                    SR_OK(shardrec_collection_set_learning_rate(one.tables(), 0,
                                                                                other ? 0.2 : 0.1));
                                  }},
                      SettingCase{"Frozen",
                                  {"frozen", "table \"t\""},
                                  [](MeshRank& one, bool other) {
                                    SR_OK(shardrec_collection_set_frozen(one.tables(), 0,
                                                                         other ? 1 : 0));
                                  }},
                      SettingCase{"Step",
                                  {"number of steps"},
                                  [](MeshRank& one, bool other) {
                                    SR_OK(
                                        shardrec_collection_set_step(one.tables(), other ? 7 : 1));
                                  }}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(ReplicaSettings, ErrorsNameTheTable) {
  run_ranks(kRanks, kGroup, [&](int rank, shardrec_comm* comm) {
    MeshRank one(comm, {});
    one.create();
    SR_OK(one.status());
    SR_OK(shardrec_collection_set_frozen(one.tables(), 0, replica_of(rank)));
    EXPECT_EQ(shardrec_collection_sync_replicas(one.tables()), SHARDREC_DISAGREEMENT);
    char* table = nullptr;
    SR_OK(shardrec_last_error_text(SHARDREC_ERROR_TABLE, &table));
    EXPECT_EQ(std::string(table), "t");
    shardrec_text_free(table);
  });
}

TEST(ReplicaSettings, OfRanksThatAreInDifferentCallsAreNotWaitedFor) {
  run_ranks(kRanks, kGroup, [&](int rank, shardrec_comm* comm) {
    // Far beyond what the test takes: nothing ends by its deadline.
    SR_OK(shardrec_comm_set_f64(comm, SHARDREC_COMM_STEP_SECONDS, 500));
    MeshRank one(comm, {});
    one.create();
    SR_OK(one.status());
    const shardrec_status status =
        rank == 3 ? one.try_read() : shardrec_collection_sync_replicas(one.tables());
    EXPECT_NE(status, SHARDREC_OK);
    if (replica_of(rank) == 1) {
      EXPECT_EQ(status, SHARDREC_MISMATCH) << shardrec_last_error();
    }
  });
}

}  // namespace
}  // namespace shardrec::test
