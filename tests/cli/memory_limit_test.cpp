// Memory that runs out, from next to none to enough: commands, services and programs end, with what they were asked for
// or a sentence.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client.h"
#include "command.h"
#include "support/eventually.h"

namespace shardrec::cli::test {
namespace {

// A program with so many KiB of addresses.
Running limited(const Scratch& scratch, int64_t kib, const std::string& program,
                const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"-c", "ulimit -v " + std::to_string(kib) + "; exec \"$0\" \"$@\"",
                               program};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return {scratch, all, "", "/bin/sh"};
}

// What is done with a program that runs, until it ends.
using Use = std::function<Finished(const Scratch&, Running&)>;
Finished wait(const Scratch&, Running& running) { return running.wait(60); }

class MemoryLimit : public testing::Test {
 protected:
  void SetUp() override {
    if (SHARDREC_SANITIZED != 0) GTEST_SKIP() << "sanitizers need terabytes of addresses";
    const Finished made = run({"generate", "--rows", "2000", "--output", scratch_.path("log.tsv")});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  std::vector<std::string> train(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{
        "train",   "--format", "criteo",    "--data", scratch_.path("log.tsv"),
        "--batch", "128",      "--threads", "1",      "--rows-per-table",
        "200",     "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // A checkpoint that services serve, as examples/cpp/dlrm.cpp leaves it.
  std::string trained() const {
    const Scratch files;
    const std::string directory = scratch_.path("run");
    const Finished result = Running(files, {"train", directory}, "", SHARDREC_DLRM_CPP).wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return directory;
  }

  // Runs it under every limit; returns how many runs came to their end. error: what a failed one says.
  static int all_end(const std::string& program, const std::vector<std::string>& arguments,
                     const std::string& error, const Use& use = wait) {
    int good = 0;
    for (int64_t mb = 100; mb <= 1000; mb += 50) {
      const Scratch scratch;
      Running running = limited(scratch, mb * 1000, program, arguments);
      const Finished result = use(scratch, running);
      EXPECT_EQ(result.hung, "") << mb << " MB";
      if (result.exit_code == 0) ++good;
      // 127: the loader had no room for the libraries.
      EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 1 || result.exit_code == 127)
          << mb << " MB: exit code " << result.exit_code << "\n"
          << result.err;
      if (result.exit_code == 1) {
        EXPECT_NE(result.err.find(error), std::string::npos) << mb << " MB: " << result.err;
        EXPECT_GT(result.err.size(), 20U) << mb << " MB: " << result.err;
      }
    }
    return good;
  }
  static int all_end(const std::vector<std::string>& arguments) {
    return all_end(SHARDREC_COMMAND, arguments, "shardrec: ");
  }

  Scratch scratch_;
};

TEST_F(MemoryLimit, TrainingEnds) {
  EXPECT_GT(all_end(train({"--ranks", "1"})), 8);
  EXPECT_GT(all_end(train({"--ranks", "4"})), 5);
}

TEST_F(MemoryLimit, ServingEnds) {
  const Finished saved = run(train({"--save", scratch_.path("model")}));
  ASSERT_EQ(saved.exit_code, 0) << saved.err;
  EXPECT_GT(all_end({"serve-bench", scratch_.path("model"), "--seconds", "0.1", "--json"}), 8);
}

TEST_F(MemoryLimit, AServiceEnds) {
  const std::string directory = trained();
  int scored = 0;
  const Use ask = [&](const Scratch& scratch, Running& running) {
    int port = 0;
    Finished ended;
    // It listens, or it has ended.
    const bool known = shardrec::test::eventually([&] {
      if (std::sscanf(read_file(scratch.path("stdout")).c_str(), "listening on port %d\n", &port) ==
          1) {
        return true;
      }
      return running.has_ended();
    });
    EXPECT_TRUE(known);
    if (port == 0) return running.wait(60);
    try {
      // Four dense numbers, and an id of each of six features.
      Client client(port);
      const std::string answer = client.ask("0.5 1 -1 0;1,2,3,4,5,6");
      if (answer.rfind("score ", 0) == 0) ++scored;
      client.ask("refresh");
      client.ask("quit");
    } catch (const std::runtime_error&) {  // it has ended since
    }
    return running.wait(60);
  };
  EXPECT_GT(all_end(SHARDREC_SERVE_C, {directory, "0", "2"}, "", ask), 8);
  EXPECT_GT(scored, 8);
}

TEST_F(MemoryLimit, ProgramsInCAndCppEnd) {
  EXPECT_GT(all_end(SHARDREC_FIRST_C, {}, ""), 8);
  EXPECT_GT(all_end(SHARDREC_FIRST_CPP, {}, ""), 8);
  EXPECT_GT(all_end(SHARDREC_DLRM_CPP, {"serve", trained()}, ""), 8);
}

}  // namespace
}  // namespace shardrec::cli::test
