// Ranks in processes: the engines between processes give what threads give, and `launch` starts,
// watches and ends processes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "command.h"
#include "support/eventually.h"

namespace shardrec::cli::test {
namespace {

const std::string kGolden = SHARDREC_GOLDEN;

std::string last_line(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::string last;
  while (std::getline(lines, line)) {
    if (!line.empty()) last = line;
  }
  return last;
}

class Engines : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (SHARDREC_SANITIZED != 0 && std::string(GetParam()) == "mpi") {
      GTEST_SKIP() << "what Open MPI leaks at its end makes every rank fail under the sanitizers";
    }
    const Finished tried =
        run({"replay", kGolden + "/sharded.json", "--case", "s02", "--engine", GetParam()});
    if (tried.out.find("which is not installed") != std::string::npos) {
      GTEST_SKIP() << "the plug-in of the engine " << GetParam() << " was not built";
    }
  }
};

TEST_P(Engines, ReplayHasTheErrorsOfThreads) {
  for (const char* file : {"/sharded.json", "/replicas.json", "/ddp.json"}) {
    const Finished threads = run({"replay", kGolden + file});
    const Finished processes = run({"replay", kGolden + file, "--engine", GetParam()});
    EXPECT_EQ(processes.exit_code, 0) << processes.out << processes.err;
    EXPECT_EQ(processes.out, threads.out);  // also each largest error, to its last printed digit
  }
}

TEST_P(Engines, BenchReportsOneLineForAllRanks) {
  const Finished result =
      run({"bench",     "step",    "--tables",  "4",         "--rows",   "1000",    "--dim",
           "16",        "--batch", "64",        "--pooling", "3",        "--ranks", "2",
           "--threads", "1",       "--seconds", "0.1",       "--engine", GetParam()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json report = result.json();
  EXPECT_EQ(report.at("ranks"), 2);
  EXPECT_GE(report.at("steps"), 5);
  EXPECT_EQ(report.at("ids").get<int64_t>(), 4 * 64 * 3);
  EXPECT_EQ(last_line(result.out) + "\n", result.out);  // rank 0 alone has printed
}

TEST_P(Engines, TrainLearnsWhatThreadsLearn) {
  const Scratch scratch;
  const std::string log = scratch.path("log.tsv");
  ASSERT_EQ(run({"generate", "--rows", "4000", "--output", log}).exit_code, 0);
  const auto train = [&](const std::string& engine) {
    const Finished result =
        run({"train", "--format", "criteo", "--data", log, "--batch", "128", "--threads", "1",
             "--ranks", "2", "--sharding", "mixed", "--json", "--engine", engine});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json();
  };
  const nlohmann::json threads = train("local");
  const nlohmann::json processes = train(GetParam());
  EXPECT_EQ(processes.at("first_losses"), threads.at("first_losses"));
  EXPECT_EQ(processes.at("test_auc"), threads.at("test_auc"));
}

INSTANTIATE_TEST_SUITE_P(BetweenProcesses, Engines, testing::Values("gloo", "mpi"),
                         [](const auto& engine) { return std::string(engine.param); });

TEST(Launch, EachProcessFindsItsPlace) {
  const Finished result =
      run({"launch", "--nproc", "4", "--ranks-per-node", "2", "--", "sh", "-c",
           "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE ${SHARDREC_TOKEN:+token}"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.out);
  std::set<std::string> seen;
  for (std::string line; std::getline(lines, line);) seen.insert(line);
  EXPECT_EQ(seen, (std::set<std::string>{"0/4 0/2 token", "1/4 1/2 token", "2/4 0/2 token",
                                         "3/4 1/2 token"}));
}

TEST(Launch, SaysWhoFailedFirstAndEndsTheOthers) {
  const auto start = std::chrono::steady_clock::now();
  // Both at once: the others are given five seconds to end by themselves.
  auto first = std::async(std::launch::async, [] {
    return run(
        {"launch", "--nproc", "3", "--", "sh", "-c", "[ $RANK = 1 ] && kill -9 $$; sleep 60"});
  });
  const Finished failed =
      run({"launch", "--nproc", "2", "--", "sh", "-c", "[ $RANK = 0 ] && exit 7; sleep 60"});
  const Finished killed = first.get();
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_NE(killed.err.find("rank 1 was killed by signal 9"), std::string::npos) << killed.err;
  EXPECT_EQ(failed.exit_code, 7);
  EXPECT_NE(failed.err.find("rank 0 ended with exit code 7"), std::string::npos) << failed.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
}

TEST(Launch, PassesSignalsOn) {
  const Scratch scratch;
  Running launched(scratch,
                   {"launch", "--nproc", "2", "--", "sh", "-c",
                    "trap 'echo told; exit 3' INT; echo ready >&2; while :; do sleep 0.1; done"});
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (launched.err() != "ready\nready\n" && std::chrono::steady_clock::now() < give_up) {
  }
  launched.interrupt();
  const Finished result = launched.wait();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "told\ntold\n");
}

// A launcher as mpirun is where it does not end by the first signal, and ranks that do not either.
TEST(Launch, ALauncherThatStaysIsEndedWithItsRanks) {
  const Scratch folder;
  folder.write("mpirun",
               "#!/bin/sh\n"
               "trap '' TERM INT HUP\n"
               "sleep 200 &\n"
               "echo $! >'" +
                   folder.path("rank") +
                   "'\n"
                   "echo $$ >'" +
                   folder.path("launcher") +
                   "'\n"
                   "wait\n");
  std::filesystem::permissions(folder.path("mpirun"), std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.path("") + ":" + path).c_str(), 1);
  Running running(folder, {"launch", "--engine", "mpi", "--nproc", "2", "--", "true"});
  ::setenv("PATH", path.c_str(), 1);
  const auto process = [&](const char* file) {
    const std::string text = read_file(folder.path(file));
    return text.empty() ? pid_t{0} : static_cast<pid_t>(std::stol(text));
  };
  ASSERT_TRUE(shardrec::test::eventually([&] {
    return std::filesystem::exists(folder.path("launcher")) && process("launcher") != 0;
  }));
  running.terminate();
  const Finished result = running.wait(60);
  EXPECT_EQ(result.exit_code, 137) << result.hung;
  // Whoever takes in orphans may not have asked for its end yet.
  const auto lives = [](pid_t number) {
    std::ifstream file("/proc/" + std::to_string(number) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return !text.empty() && text[text.rfind(')') + 2] != 'Z';
  };
  EXPECT_TRUE(shardrec::test::eventually([&] { return !lives(process("rank")); }));
  EXPECT_FALSE(lives(process("launcher")));
}

TEST_P(Engines, TheProgramsToCopyTrainAndLeaveInOrder) {
  for (const char* program : {SHARDREC_PROCESSES_C, SHARDREC_PROCESSES_CPP}) {
    const Finished result = run({"launch", "--nproc", "2", "--engine", GetParam(), "--", program});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(result.out.starts_with("2 ranks, last loss: ")) << result.out;
  }
}

TEST(Launch, AProgramThatIsNotThereIsAFailure) {
  const Finished result = run({"launch", "--nproc", "2", "--", "/nonexistent/program"});
  EXPECT_EQ(result.exit_code, 127);
}

}  // namespace
}  // namespace shardrec::cli::test
