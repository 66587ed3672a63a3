// A job on several hosts has the numbers of one process, and hosts meet only as they are told to.
#include <chrono>
#include <nlohmann/json.hpp>

#include "fixture.h"
#include "support/eventually.h"

namespace shardrec::hosts {
namespace {

using cli::test::Scratch;

TEST_F(Hosts, TrainOverGlooHasTheBitsOfThreads) {
  make_hosts_on_a_bridge(2);
  expect_bits_of_threads("gloo", 4, "grid");
  if (SHARDREC_SANITIZED != 0) return;  // each job takes some seconds there
  make_jobs_short();
  expect_bits_of_threads("gloo", 4, "table_row_wise");
  expect_bits_of_threads("gloo", 4, "mixed");
}

TEST_F(Hosts, TheLastOfThreeHostsMayHaveFewerRanks) {
  make_hosts_on_a_bridge(3);
  make_jobs_short();
  expect_bits_of_threads("gloo", 5, "table_row_wise");
}

TEST_F(Hosts, TrainOverOpenMpiHasTheBitsOfThreads) {
  if (SHARDREC_SANITIZED != 0) {
    GTEST_SKIP() << "what Open MPI leaks at its end makes every rank fail under the sanitizers";
  }
  if (!is_built("mpi")) GTEST_SKIP() << "the plug-in of the engine mpi was not built";
  make_hosts_on_a_bridge(2);
  make_jobs_short();
  expect_bits_of_threads("mpi", 4, "grid");
}

TEST_F(Hosts, RecordedStepsOfTorchRecPass) {
  make_hosts_on_a_bridge(2);
  for (const char* name : {"s06", "s22"}) {
    const auto finished = Job(hosts(), 4,
                              {"replay", SHARDREC_GOLDEN "/sharded.json", "--case", name, "--ranks",
                               "4", "--engine", "gloo"})
                              .wait();
    for (const Finished& rank : finished) ASSERT_EQ(rank.exit_code, 0) << rank.err;
    EXPECT_EQ(finished[0].json().at("outcome"), 0) << finished[0].out;  // passed
    EXPECT_GT(finished[0].json().at("weights").at(0), 0) << "values that were compared";
  }
}

// Rank 0's host still hears of both.
TEST_F(Hosts, APartitionBetweenTwoOthersEndsTheJobInFiveSeconds) {
  make_hosts_on_a_bridge(3);
  make_jobs_short();
  Arguments endless = train("gloo", 5, "row_wise", "");
  endless.insert(endless.end(), {"--epochs", "100000"});
  Job job(hosts(), 5, endless);
  ASSERT_TRUE(test::eventually([&] {
    return job.rank(0).err().find("epoch 2/") != std::string::npos;
  })) << "training has not begun";
  bridge().part({1, 2});
  const auto finished = expect_end_in_time(job);
  for (size_t rank = 0; rank < finished.size(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    const std::string& said = finished[rank].err;
    EXPECT_NE(said.find("Connection timed out"), std::string::npos) << said;
    bool names_one_of_them = false;
    for (const char* parted : {"rank 2 failed", "rank 3 failed", "rank 4 failed"}) {
      names_one_of_them = names_one_of_them || said.find(parted) != std::string::npos;
    }
    EXPECT_TRUE(names_one_of_them) << said;
  }
}

class Meeting : public Hosts {
 protected:
  // A rank with its place but for some variables; an empty one is as good as unset.
  Process start(int rank, const Variables& changed = {}) {
    Variables variables = place_of(rank, 4, *hosts()[0]);
    for (const auto& [name, value] : changed) variables[name] = value;
    Arguments command = train("gloo", 4, "grid", "");
    command.insert(command.begin(), SHARDREC_COMMAND);
    return {*hosts()[static_cast<size_t>(rank / kRanksPerHost)], command, variables,
            scratch_.path(std::to_string(++started_))};
  }
  static Finished end(Process process) {
    const auto finished = process.wait(Clock::now() + std::chrono::seconds(30));
    return finished ? *finished : Finished{-1, process.out(), "it hangs: " + process.err()};
  }

 private:
  const Scratch scratch_;
  int started_ = 0;
};

TEST_F(Meeting, NobodyListensToOtherHostsWithoutASecretAndLeaveForClearText) {
  make_hosts_on_a_bridge(2);
  const std::vector<std::pair<Variables, std::string>> refusals{
      {{{"SHARDREC_SECRET", ""}}, "the environment variable SHARDREC_SECRET is not set"},
      {{{"SHARDREC_SECRET", "short"}}, "SHARDREC_SECRET"},
      {{{"SHARDREC_ALLOW_PLAIN_TCP", ""}},
       "other machines can reach the rendezvous at 10.77.0.1, and what ranks send to each other is "
       "clear text"},
      {{{"SHARDREC_ALLOW_PLAIN_TCP", "0"}, {"SHARDREC_BIND", "0.0.0.0"}},
       "other machines can reach the rendezvous at 0.0.0.0"},
      {{{"MASTER_ADDR", "10.77.0.2"}}, "10.77.0.2"}};
  for (const auto& [changed, sentence] : refusals) {
    const Finished finished = end(start(0, changed));
    EXPECT_EQ(finished.exit_code, 1) << sentence;
    EXPECT_NE(finished.err.find(sentence), std::string::npos) << finished.err;
  }
}

TEST_F(Meeting, ARankWithAnotherSecretIsToldSoAndTheOthersMeet) {
  make_hosts_on_a_bridge(2);
  std::vector<Process> ranks;
  ranks.push_back(start(0));
  const Finished outsider = end(start(2, {{"SHARDREC_SECRET", "what-nobody-else-knows"}}));
  EXPECT_EQ(outsider.exit_code, 1);
  EXPECT_NE(outsider.err.find("secret"), std::string::npos) << outsider.err;
  for (int rank = 1; rank < 4; ++rank) ranks.push_back(start(rank));
  for (Process& rank : ranks) {
    const Finished finished = end(std::move(rank));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
  }
}

}  // namespace
}  // namespace shardrec::hosts
