// A job over a bad network is slower and has the same numbers; one that is cut in two ends.
#include "relay.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "fixture.h"
#include "support/eventually.h"

namespace shardrec::hosts {
namespace {

using std::chrono::milliseconds;

class Weathers : public Hosts {
 protected:
  void SetUp() override {
    Hosts::SetUp();
    if (IsSkipped()) return;
    make_hosts(2);
    make_jobs_short();
    const std::string why = refused_relay(*hosts()[0], *hosts()[1]);
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(Weathers, DelayLossAndReorderingMakeTrainingSlowerAndLeaveItsBits) {
  Relay relay(*hosts()[0], *hosts()[1],
              {.delay = milliseconds(20), .loss = 0.01, .late = 0.02, .seed = 7});
  const Finished finished = expect_bits_of_threads("gloo", 4, "grid");
  ASSERT_FALSE(HasFailure());
  const Traffic traffic = relay.traffic();
  EXPECT_GT(traffic.lost, 0U);
  EXPECT_GT(traffic.overtaken, 0U);
  // A step's exchanges wait for each other: forward's ids and outputs, backward's gradients, and
  // the sums of the layers, each at least one way through the relay.
  const nlohmann::json report = finished.json();
  const auto steps = static_cast<double>(report.at("first_losses").size());
  EXPECT_GT(report.at("seconds").get<double>(), steps * 4 * 0.02);
}

TEST_F(Weathers, APartitionIsToldToEveryRankWithARankOfTheOtherSide) {
  Relay relay(*hosts()[0], *hosts()[1], {});
  Arguments endless = train("gloo", 4, "grid", "");
  endless.insert(endless.end(), {"--epochs", "100000"});
  Job job(hosts(), 4, endless);
  ASSERT_TRUE(test::eventually([&] { return relay.traffic().payload_bytes >= 1'000'000; }))
      << "training has not begun";
  relay.cut();
  const auto finished = expect_end_in_time(job);
  for (size_t rank = 0; rank < finished.size(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const std::string& said = finished[rank].err;
    // Heartbeats and the system's own timeouts of connections see it at about the same time.
    EXPECT_TRUE(said.find("nothing was heard of it for 4000 ms") != std::string::npos ||
                said.find("Connection timed out") != std::string::npos)
        << said;
    const int other_side = rank < kRanksPerHost ? kRanksPerHost : 0;
    bool of_the_other_side = false;
    for (int other = other_side; other < other_side + kRanksPerHost; ++other) {
      const std::string name = "rank " + std::to_string(other);
      of_the_other_side = of_the_other_side || said.find(name + " is gone") != std::string::npos ||
                          said.find("with " + name + " failed") != std::string::npos;
    }
    EXPECT_TRUE(of_the_other_side) << said;
  }
}

}  // namespace
}  // namespace shardrec::hosts
