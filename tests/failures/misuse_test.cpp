// One rank of a group of processes does what no rank should: all ranks are told who did what, and
// training goes on where it can.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "comm/remote/transport.h"

namespace shardrec::failures {
namespace {

constexpr int kRanks = 3;
constexpr int kFailedRank = 1;
constexpr double kDeadline = 60;  // seconds

struct Complaint {
  std::string call, status;
  int failed_rank = -1;
  std::string sentence;
};

struct Outcome {
  int exit_code = -1;  // of the launcher
  std::string output;
  std::map<int, std::vector<Complaint>> complaints;  // by rank
  std::map<int, std::string> digests;
};

// Should mpirun not end though all its ranks have, which is none of ours, there is a second try.
cli::test::Finished run_ranks(const std::string& engine, const std::string& scenario) {
  for (int tries = 1;; ++tries) {
    const cli::test::Scratch scratch;
    cli::test::Running launcher(
        scratch, {"launch", "--engine", engine, "--nproc", std::to_string(kRanks), "--",
                  SHARDREC_TEST_MISUSE_HOST, scenario});
    cli::test::Finished finished = launcher.wait(kDeadline);
    const bool of_mpirun = finished.hung.find(": mpirun") != std::string::npos &&
                           finished.hung.find(": " SHARDREC_TEST_MISUSE_HOST) == std::string::npos;
    if (!of_mpirun || tries == 2) return finished;
  }
}

Outcome launch(const std::string& engine, const std::string& scenario) {
  const cli::test::Finished finished = run_ranks(engine, scenario);
  Outcome outcome{.exit_code = finished.exit_code, .output = finished.out + finished.err};
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::string call;
    int rank = -1;
    if (!(words >> word >> rank >> word >> call) || word != ":") continue;
    if (call == "digest") {
      words >> outcome.digests[rank];
      continue;
    }
    Complaint complaint{.call = call};
    words >> complaint.status >> complaint.failed_rank >> word;
    std::getline(words, complaint.sentence);
    outcome.complaints[rank].push_back(complaint);
  }
  return outcome;
}

// The first complaint of each rank. call: one of these words.
void expect_reported(const Outcome& outcome, int rank, const std::string& call,
                     const std::string& status, int failed_rank,
                     const std::vector<std::string>& words) {
  SCOPED_TRACE("rank " + std::to_string(rank));
  const auto told = outcome.complaints.find(rank);
  ASSERT_NE(told, outcome.complaints.end()) << outcome.output;
  const Complaint& first = told->second.front();
  EXPECT_NE(call.find(first.call), std::string::npos) << outcome.output;
  EXPECT_EQ(first.status, status) << outcome.output;
  if (failed_rank >= 0) {
    EXPECT_EQ(first.failed_rank, failed_rank) << first.sentence;
  }
  for (const std::string& word : words) {
    EXPECT_NE(first.sentence.find(word), std::string::npos) << first.sentence;
  }
}

class Misuse : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!comm::remote::transport_available(GetParam())) {
      GTEST_SKIP() << "the plug-in was not built: its library is not installed";
    }
    if (std::string(GetParam()) == "mpi" && std::system("command -v mpirun > /dev/null") != 0) {
      GTEST_SKIP() << "there is no mpirun";
    }
  }
  static Outcome run(const std::string& scenario) {
    Outcome outcome = launch(GetParam(), scenario);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    return outcome;
  }
};

TEST_P(Misuse, OfNobodyGivesEveryRankTheSameTables) {
  const Outcome outcome = run("none");
  EXPECT_TRUE(outcome.complaints.empty()) << outcome.output;
  ASSERT_EQ(outcome.digests.size(), static_cast<size_t>(kRanks)) << outcome.output;
  for (const auto& [rank, digest] : outcome.digests) EXPECT_EQ(digest, outcome.digests.at(0));
}

TEST_P(Misuse, ABadBatchIsToldToAllAndTrainingGoesOn) {
  const Outcome outcome = run("bad_batch");
  for (int rank = 0; rank < kRanks; ++rank) {
    expect_reported(outcome, rank, "forward", "SHARDREC_INVALID_BATCH", kFailedRank,
                    {"rank 1", "123", "\"second\""});
    ASSERT_EQ(outcome.complaints.at(rank).size(), 1U) << outcome.output;
  }
  ASSERT_EQ(outcome.digests.size(), static_cast<size_t>(kRanks)) << outcome.output;
  for (const auto& [rank, digest] : outcome.digests) EXPECT_EQ(digest, outcome.digests.at(0));
  EXPECT_NE(outcome.digests.at(0), run("none").digests.at(0)) << "one step was not taken";
}

TEST_P(Misuse, AnotherPlanOrOrderOfTablesIsAMismatchOnAll) {
  for (const auto& [scenario, call] :
       std::map<std::string, std::string>{{"other_plan", "collection"}, {"other_order", "plan"}}) {
    SCOPED_TRACE(scenario);
    const Outcome outcome = run(scenario);
    for (int rank = 0; rank < kRanks; ++rank) {
      // Rank 1 is told of one of the others, that of it.
      expect_reported(outcome, rank, call, "SHARDREC_DISAGREEMENT",
                      rank == kFailedRank ? -1 : kFailedRank, {"rank 1"});
    }
  }
}

TEST_P(Misuse, FewerStepsEndTheOthersWhoWaitForMore) {
  const Outcome ended = run("ends_early");
  EXPECT_EQ(ended.complaints.count(kFailedRank), 0U) << ended.output;
  // Whoever waited for it was in the next step; whom that one told may not have come out of the
  // last.
  int waited = 0;
  for (const int rank : {0, 2}) {
    const std::string own = "this rank " + std::to_string(rank) + " waited for it";
    const bool is_own = ended.output.find(own) != std::string::npos;
    waited += is_own ? 1 : 0;
    expect_reported(ended, rank, is_own ? "begin forward" : "backward begin forward",
                    "SHARDREC_PEER_FAILED", kFailedRank, {"rank 1", "\"begin\"", "waited for it"});
  }
  EXPECT_GE(waited, 1) << ended.output;
  // It waits in "close" for the others, who wait for its batch: until somebody's deadline.
  const Outcome closed = run("closes_early");
  for (int rank = 0; rank < kRanks; ++rank) {
    expect_reported(closed, rank, rank == kFailedRank ? "close" : "begin forward",
                    "SHARDREC_TIMEOUT", -1, {"rank 1"});
  }
}

INSTANTIATE_TEST_SUITE_P(Between, Misuse, testing::Values("gloo", "mpi"),
                         [](const auto& engine) { return std::string(engine.param); });

}  // namespace
}  // namespace shardrec::failures
