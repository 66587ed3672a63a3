// The bytes that cross from host to host, counted on the wire.
#include <chrono>
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
  uint64_t bytes_of_forward(const std::string& sharding, int dim) {
    const Relay relay(*hosts()[0], *hosts()[1], {});
    const Arguments arguments{sharding,
                              std::to_string(dim),
                              std::to_string(kSteps),
                              std::to_string(kBatch),
                              std::to_string(kTables),
                              std::to_string(kRanks),
                              std::to_string(kRanksPerHost)};
    const auto finished = Job(hosts(), kRanks, arguments, SHARDREC_FORWARD_RANK).wait();
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
  double rows_per_bag(const std::string& sharding) {
    constexpr int kDim = 32;
    const uint64_t narrow = bytes_of_forward(sharding, kDim);
    const uint64_t wide = bytes_of_forward(sharding, 2 * kDim);
    constexpr double kBags = double{kRanks} * kBatch * kTables * kSteps;
    return (static_cast<double>(wide) - static_cast<double>(narrow)) /
           (kBags * kDim * sizeof(float));
  }
};

// Gloo's notices, 48 bytes each, are as many as the order of things asks for: some hundreds of
// bytes of a million.
constexpr double kNotices = 0.005;

TEST_F(Bytes, EachPartialSumOfABagCrossesOnceAndNothingElseDoes) {
  constexpr double kOthers = kHosts - 1;
  EXPECT_NEAR(rows_per_bag("table_wise"), kOthers / kHosts, kNotices);
  EXPECT_NEAR(rows_per_bag("row_wise"), kOthers * kRanksPerHost, kNotices);
  if (SHARDREC_SANITIZED != 0) return;
  EXPECT_NEAR(rows_per_bag("column_wise"), kOthers / kHosts, kNotices);
  EXPECT_NEAR(rows_per_bag("table_row_wise"), kOthers / kHosts * kRanksPerHost, kNotices);
}

}  // namespace
}  // namespace shardrec::hosts
