// A job on several hosts has the numbers of one process, and hosts meet only as they are told to.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "job.h"

namespace shardrec::hosts {
namespace {

using cli::test::read_file;
using cli::test::run;
using cli::test::Scratch;

using Arguments = std::vector<std::string>;

bool is_built(const std::string& engine) {
  const Finished tried =
      run({"replay", SHARDREC_GOLDEN "/sharded.json", "--case", "s02", "--engine", engine});
  return tried.out.find("which is not installed") == std::string::npos;
}

// Files of a folder by name.
std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename()] = read_file(entry.path());
  }
  return files;
}

class Hosts : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<Scratch>();
    const std::string rows = SHARDREC_SANITIZED != 0 ? "500" : "2000";
    ASSERT_EQ(run({"generate", "--rows", rows, "--output", folder_->path("log")}).exit_code, 0);
  }
  static void TearDownTestSuite() { folder_.reset(); }
  void SetUp() override {
    if (!refused().empty()) GTEST_SKIP() << refused();
    if (!is_built("gloo")) GTEST_SKIP() << "the plug-in of the engine gloo was not built";
  }

  // On a bridge.
  void make_hosts(int count) {
    for (int number = 1; number <= count; ++number) {
      hosts_.push_back(std::make_unique<Host>(number));
      all_.push_back(hosts_.back().get());
    }
    bridge_ = std::make_unique<Bridge>(all_);
  }

  static Arguments train(const std::string& engine, int ranks, const std::string& sharding,
                         const std::string& checkpoint) {
    return {"train",
            "--format",
            "criteo",
            "--data",
            folder_->path("log"),
            "--batch",
            "128",
            "--threads",
            "1",
            "--ranks",
            std::to_string(ranks),
            "--ranks-per-node",
            std::to_string(kRanksPerHost),
            "--json",
            "--engine",
            engine,
            "--sharding",
            sharding,
            "--save",
            checkpoint};
  }

  // The job on the hosts against threads here: the losses and the files of the checkpoint.
  void expect_bits_of_threads(const std::string& engine, int ranks, const std::string& sharding) {
    SCOPED_TRACE(sharding);
    const Scratch scratch;
    const Finished here = run(train("local", ranks, sharding, scratch.path("here")));
    ASSERT_EQ(here.exit_code, 0) << here.err;
    Finished there;
    if (engine == "mpi") {
      there = mpirun(all_, ranks, train(engine, ranks, sharding, scratch.path("there")));
      ASSERT_EQ(there.exit_code, 0) << there.err;
    } else {
      const auto finished =
          Job(all_, ranks, train(engine, ranks, sharding, scratch.path("there"))).wait();
      for (const Finished& rank : finished) ASSERT_EQ(rank.exit_code, 0) << rank.err;
      there = finished[0];
    }
    for (const char* number : {"first_losses", "test_auc", "test_ne"}) {
      EXPECT_EQ(there.json().at(number), here.json().at(number)) << number;
    }
    const auto expected = contents(scratch.path("here"));
    EXPECT_GE(expected.size(), 4U);
    EXPECT_TRUE(contents(scratch.path("there")) == expected) << "the checkpoints differ";
  }

  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<const Host*> all_;
  std::unique_ptr<Bridge> bridge_;

 private:
  static std::unique_ptr<Scratch> folder_;
};

std::unique_ptr<Scratch> Hosts::folder_;

TEST_F(Hosts, TrainOverGlooHasTheBitsOfThreads) {
  make_hosts(2);
  expect_bits_of_threads("gloo", 4, "grid");
  if (SHARDREC_SANITIZED != 0) return;
  expect_bits_of_threads("gloo", 4, "table_row_wise");
  expect_bits_of_threads("gloo", 4, "mixed");
}

TEST_F(Hosts, TheLastOfThreeHostsMayHaveFewerRanks) {
  make_hosts(3);
  expect_bits_of_threads("gloo", 5, "table_row_wise");
}

TEST_F(Hosts, TrainOverOpenMpiHasTheBitsOfThreads) {
  if (SHARDREC_SANITIZED != 0) {
    GTEST_SKIP() << "what Open MPI leaks at its end makes every rank fail under the sanitizers";
  }
  if (!is_built("mpi")) GTEST_SKIP() << "the plug-in of the engine mpi was not built";
  make_hosts(2);
  expect_bits_of_threads("mpi", 4, "grid");
}

TEST_F(Hosts, RecordedStepsOfTorchRecPass) {
  make_hosts(2);
  for (const char* name : {"s06", "s22"}) {
    const auto finished = Job(all_, 4,
                              {"replay", SHARDREC_GOLDEN "/sharded.json", "--case", name, "--ranks",
                               "4", "--engine", "gloo"})
                              .wait();
    for (const Finished& rank : finished) ASSERT_EQ(rank.exit_code, 0) << rank.err;
    EXPECT_EQ(finished[0].json().at("outcome"), 0) << finished[0].out;  // passed
    EXPECT_GT(finished[0].json().at("weights").at(0), 0) << "values that were compared";
  }
}

class Meeting : public Hosts {
 protected:
  // A rank with its place but for some variables; an empty one is as good as unset.
  Process start(int rank, const Variables& changed = {}) {
    Variables variables = place_of(rank, 4, *all_[0]);
    for (const auto& [name, value] : changed) variables[name] = value;
    Arguments command = train("gloo", 4, "grid", "");
    command.insert(command.begin(), SHARDREC_COMMAND);
    return {*all_[static_cast<size_t>(rank / kRanksPerHost)], command, variables,
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
  make_hosts(2);
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
  make_hosts(2);
  std::vector<Process> ranks;
  ranks.push_back(start(0));
  const Finished stranger = end(start(2, {{"SHARDREC_SECRET", "what-nobody-else-knows"}}));
  EXPECT_EQ(stranger.exit_code, 1);
  EXPECT_NE(stranger.err.find("secret"), std::string::npos) << stranger.err;
  for (int rank = 1; rank < 4; ++rank) ranks.push_back(start(rank));
  for (Process& rank : ranks) {
    const Finished finished = end(std::move(rank));
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
  }
}

}  // namespace
}  // namespace shardrec::hosts
