// Memory that runs out, from next to none to enough: every command ends, with what it was asked for or a sentence.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"

namespace shardrec::cli::test {
namespace {

// The command with so many KiB of addresses.
Finished limited(int64_t kib, const std::vector<std::string>& arguments) {
  const Scratch scratch;
  std::vector<std::string> all{"-c", "ulimit -v " + std::to_string(kib) + "; exec \"$0\" \"$@\"",
                               SHARDREC_COMMAND};
  all.insert(all.end(), arguments.begin(), arguments.end());
  Running running(scratch, all, "", "/bin/sh");
  return running.wait(60);
}

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

  // Runs it under every limit; returns how many runs came to their end.
  static int all_end(const std::vector<std::string>& arguments) {
    int good = 0;
    for (int64_t mb = 100; mb <= 1000; mb += 50) {
      const Finished result = limited(mb * 1000, arguments);
      EXPECT_EQ(result.hung, "") << mb << " MB";
      if (result.exit_code == 0) ++good;
      // 127: the loader had no room for the libraries.
      EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 1 || result.exit_code == 127)
          << mb << " MB: exit code " << result.exit_code << "\n"
          << result.err;
      EXPECT_EQ(result.exit_code == 1, result.err.find("shardrec: ") != std::string::npos)
          << mb << " MB: " << result.err;
    }
    return good;
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

}  // namespace
}  // namespace shardrec::cli::test
