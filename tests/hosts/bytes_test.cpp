// The bytes that cross from host to host, counted on the wire.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "fixture.h"
#include "relay.h"

namespace shardrec::hosts {
namespace {

constexpr int kHosts = 2;
constexpr int kRanks = kHosts * kRanksPerHost;
constexpr int kSteps = 3;
constexpr int kBatch = 128;  // of each rank
constexpr int kTables = 4;

class Bytes : public Hosts {
 protected:
  void SetUp() override {
    Hosts::SetUp();
    if (IsSkipped()) return;
    make_hosts(kHosts);
    const std::string why = refused_relay(*hosts()[0], *hosts()[1]);
    if (!why.empty()) GTEST_SKIP() << why;
  }

  // All that crosses in a job of kSteps forward passes over tables of `dim` columns.
  uint64_t bytes_of_forward(const std::string& sharding, const std::string& hierarchical, int dim) {
    const Arguments arguments{sharding,
                              std::to_string(dim),
                              std::to_string(kSteps),
                              std::to_string(kBatch),
                              std::to_string(kTables),
                              std::to_string(kRanks),
                              std::to_string(kRanksPerHost),
                              hierarchical};
    return bytes_of(arguments, SHARDREC_FORWARD_RANK);
  }

  // All that crosses in a training of two replicas that is averaged after every `every` steps.
  uint64_t bytes_of_training(const std::string& placement, const std::string& every,
                             const std::string& dim) {
    Arguments arguments = train("gloo", kRanks, "row_wise", "");
    *(std::ranges::find(arguments, "--dim") + 1) = dim;
    arguments.insert(arguments.end(), {"--sharding-group-size", "2", "--placement", placement,
                                       "--sync-every", every});
    return bytes_of(arguments);
  }

  template <class... Program>
  uint64_t bytes_of(const Arguments& arguments, Program... program) {
    const Relay relay(*hosts()[0], *hosts()[1], {});
    const auto finished = Job(hosts(), kRanks, arguments, program...).wait();
    for (const Finished& rank : finished) EXPECT_EQ(rank.exit_code, 0) << rank.err;
    // The kernel may still send what processes that have ended left.
    for (uint64_t frames = 0; frames != relay.traffic().frames;) {
      frames = relay.traffic().frames;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return relay.traffic().payload_bytes;
  }

  // Output values that cross per bag, in multiples of a row: what more columns add, since nothing
  // but outputs depends on their number.
  double rows_per_bag(const std::string& sharding, const std::string& hierarchical) {
    constexpr int kDim = 32;
    const uint64_t narrow = bytes_of_forward(sharding, hierarchical, kDim);
    const uint64_t wide = bytes_of_forward(sharding, hierarchical, 2 * kDim);
    constexpr double kBags = double{kRanks} * kBatch * kTables * kSteps;
    return (static_cast<double>(wide) - static_cast<double>(narrow)) /
           (kBags * kDim * sizeof(float));
  }
};

// Gloo's notices, 48 bytes each, are as many as the order of things asks for: some hundreds of
// bytes of a million.
constexpr double kNotices = 0.005;

constexpr double kOthers = kHosts - 1;

TEST_F(Bytes, OneSumPerBagAndHostCrossesAndNothingElseDoes) {
  EXPECT_NEAR(rows_per_bag("table_wise", "default"), kOthers / kHosts, kNotices);
  EXPECT_NEAR(rows_per_bag("row_wise", "default"), kOthers, kNotices);
  EXPECT_NEAR(rows_per_bag("column_wise", "default"), kOthers / kHosts, kNotices);
  EXPECT_NEAR(rows_per_bag("table_row_wise", "default"), kOthers / kHosts, kNotices);
  EXPECT_NEAR(rows_per_bag("grid", "default"), kOthers / kHosts, kNotices);
}

TEST_F(Bytes, WithoutSumsOnHostsEachPartialSumCrosses) {
  EXPECT_NEAR(rows_per_bag("row_wise", "0"), kOthers * kRanksPerHost, kNotices);
  EXPECT_NEAR(rows_per_bag("table_row_wise", "0"), kOthers / kHosts * kRanksPerHost, kNotices);
}

// What syncs add for more columns, since nothing but rows depends on their number: neighbours average rows among
// themselves.
TEST_F(Bytes, RowsOfASyncStayOnTheHostWhereReplicasAreNeighbours) {
  const auto of_rows = [&](const std::string& placement) {
    const auto of_syncs = [&](const std::string& dim) {
      return static_cast<double>(bytes_of_training(placement, "1", dim)) -
             static_cast<double>(bytes_of_training(placement, "1000000", dim));
    };
    return of_syncs("32") - of_syncs("16");
  };
  const double across = of_rows("intra_node_shard");
  EXPECT_GT(across, 5e5);
  EXPECT_NEAR(of_rows("intra_node_sync") / across, 0, 2 * kNotices);
}

// By hand, with --gtest_also_run_disabled_tests: what a pass costs on two hosts, by both ways.
TEST_F(Bytes, DISABLED_TimesWithAndWithoutSumsOnHosts) {
  const Relay relay(*hosts()[0], *hosts()[1], {});
  for (const char* sharding : {"row_wise", "table_row_wise"}) {
    for (const char* hierarchical : {"0", "1", "0", "1"}) {
      const Arguments arguments{sharding, "128", "20", "1024", "8", "4", "2", hierarchical};
      const auto finished = Job(hosts(), kRanks, arguments, SHARDREC_FORWARD_RANK).wait();
      ASSERT_EQ(finished[0].exit_code, 0) << finished[0].err;
      std::cout << sharding << ", hierarchical " << hierarchical << ": " << finished[0].out;
    }
  }
}

}  // namespace
}  // namespace shardrec::hosts
