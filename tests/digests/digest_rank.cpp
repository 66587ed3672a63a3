// One rank of a job: the recorded digests between processes, on the engine that the launcher names.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "core/hash.h"
#include "digests/digest.h"
#include "support/ranks.h"

namespace shardrec::test {
namespace {

shardrec_comm* everyone = nullptr;

// SHARDREC_TEST_EVERY=N: one of N of the configurations.
std::vector<size_t> chosen_configurations() {
  const char* const every = std::getenv("SHARDREC_TEST_EVERY");
  const auto step = static_cast<size_t>(every == nullptr ? 1 : std::max(1, std::atoi(every)));
  std::vector<size_t> chosen;
  const auto spread = spread_of_configurations();
  for (size_t i = 0; i < spread.size(); i += step) chosen.push_back(spread[i]);
  return chosen;
}

// Each world size is made once of the ranks of the job. All of them stay as they are: meshes split
// them again, more often than a part of them can be split.
TEST(DigestsBetweenProcesses, AreThoseOfThreads) {
  const auto all = configurations();
  const auto recorded = recorded_digests();
  const auto spread = chosen_configurations();
  ASSERT_EQ(recorded.size(), all.size());
  int32_t rank = -1;
  int32_t ranks = 0;
  SR_OK(shardrec_comm_rank(everyone, &rank));
  SR_OK(shardrec_comm_size(everyone, &ranks));
  size_t ran = 0;
  for (const int world : {1, 2, 4}) {
    if (world > ranks) continue;
    shardrec_comm* part = nullptr;
    if (world < ranks) {
      SR_OK(shardrec_comm_split(everyone, rank < world ? 0 : -1, 0, &part));
    }
    if (rank >= world) continue;
    shardrec_comm* const comm = part == nullptr ? everyone : part;
    for (const size_t i : spread) {
      if (all[i].world != world) continue;
      ++ran;
      EXPECT_EQ(core::to_hex(digest_of(all[i], comm)), core::to_hex(recorded[i].second))
          << all[i].name;
    }
    if (part != nullptr) {
      SR_OK(shardrec_comm_close(part));
    }
    shardrec_comm_destroy(&part);
  }
  EXPECT_TRUE(rank != 0 || ran == spread.size()) << ran;
}

double by_nccl(shardrec_comm* comm) {
  double value = -1;
  SR_EXPECT_OK(shardrec_comm_get_f64(comm, SHARDREC_COMM_NCCL, &value));
  return value;
}

// Without that, meshes would have the same digests by way of the hosts.
TEST(DigestsBetweenProcesses, PartsOfTheRanksHaveTheBodiesOfTheEngine) {
  const char* const engine = std::getenv("SHARDREC_ENGINE");
  ASSERT_NE(engine, nullptr);
  const double expected = std::strcmp(engine, "nccl") == 0 ? 1 : 0;
  EXPECT_EQ(by_nccl(everyone), expected);
  shardrec_comm* part = nullptr;
  SR_OK(shardrec_comm_split(everyone, 0, 0, &part));
  EXPECT_EQ(by_nccl(part), expected);
  shardrec_mesh* mesh = nullptr;
  SR_OK(shardrec_mesh_create(part, 2, nullptr, &mesh));
  for (const shardrec_mesh_group kind :
       {SHARDREC_MESH_GROUP_SHARDING, SHARDREC_MESH_GROUP_REPLICA}) {
    shardrec_comm* group = nullptr;
    SR_OK(shardrec_mesh_comm(mesh, kind, &group));
    EXPECT_EQ(by_nccl(group), expected);
    shardrec_comm_destroy(&group);
  }
  SR_OK(shardrec_comm_barrier(part));
  shardrec_mesh_destroy(&mesh);
  SR_OK(shardrec_comm_close(part));
  shardrec_comm_destroy(&part);
}

}  // namespace
}  // namespace shardrec::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (shardrec_comm_create_from_env(nullptr, &shardrec::test::everyone) != SHARDREC_OK) {
    std::fprintf(stderr, "digest_rank: %s\n", shardrec_last_error());
    return 1;
  }
  int32_t rank = -1;
  shardrec_comm_rank(shardrec::test::everyone, &rank);
  if (rank != 0) {
    GTEST_FLAG_SET(output, "");
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  const int status = RUN_ALL_TESTS();
  if (status != 0) std::fprintf(stderr, "digest_rank: rank %d found other digests\n", rank);
  shardrec_comm_close(shardrec::test::everyone);
  shardrec_comm_destroy(&shardrec::test::everyone);
  return status;
}
