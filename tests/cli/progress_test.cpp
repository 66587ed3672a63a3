// What long work says while it runs: lines behind every so many steps where there is no terminal, with the time left.
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"
#include "command/time_left.h"
#include "support/eventually.h"
#include "train/history.h"

namespace shardrec::cli::test {
namespace {

using nlohmann::json;

class Progress : public testing::Test {
 protected:
  void SetUp() override {
    const Finished result =
        run({"generate", "--rows", "3000", "--output", scratch_.path("log.tsv")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  // What it says on standard error, line by line.
  std::vector<std::string> lines(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "train",   "--format", "criteo",    "--data", scratch_.path("log.tsv"),
        "--batch", "64",       "--threads", "1",      "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    run_ = run(arguments);
    EXPECT_EQ(run_.exit_code, 0) << run_.err;
    std::vector<std::string> found{""};
    for (const char c : run_.err) {
      if (c == '\n') {
        found.emplace_back();
      } else {
        found.back() += c;
      }
    }
    found.pop_back();
    return found;
  }
  const Scratch scratch_;
  Finished run_;
};

TEST_F(Progress, TrainingSaysALineBehindEverySoManySteps) {
  const std::vector<std::string> said = lines({"--progress-every", "10", "--epochs", "2"});
  std::vector<std::string> steps;
  for (const std::string& line : said) {
    const size_t at = line.find("  step ");
    if (at == std::string::npos) continue;
    steps.push_back(line.substr(0, line.find(' ', 6)) +
                    line.substr(at, line.find(' ', at + 7) - at));
    EXPECT_NE(line.find("  loss 0."), std::string::npos) << line;
    EXPECT_NE(line.find("  AUC 0."), std::string::npos) << line;
    EXPECT_NE(line.find(" samples/s"), std::string::npos) << line;
  }
  // Some 2,400 training samples: 37 or 38 batches.
  const json line = run_.json();
  const int64_t all = line.at("steps");
  std::vector<std::string> expected;
  for (int64_t step = 1; step <= all; ++step) {
    const std::string epoch = step <= all / 2 ? "epoch 1/2" : "epoch 2/2";
    if (step % 10 == 0 || step == all / 2 || step == all) {
      expected.push_back(epoch + "  step " + std::to_string(step));
    }
  }
  EXPECT_GT(all, 60);
  EXPECT_EQ(steps, expected);
  EXPECT_EQ(said.back().find("test 100%"), 0u) << said.back();
}

TEST_F(Progress, WithoutStepsThereIsALineForEachEpoch) {
  EXPECT_EQ(lines({"--progress-every", "0", "--epochs", "3"}).size(), 4u);  // and the test
}

TEST_F(Progress, SaysHowLongItWillTake) {
  Running command(scratch_, {"train", "--format", "criteo", "--data", scratch_.path("log.tsv"),
                             "--epochs", "1000000", "--threads", "1", "--progress-every", "1"});
  EXPECT_TRUE(shardrec::test::eventually(
      [&] { return command.err().find(" left\n") != std::string::npos; }, 60));
  command.interrupt();
  command.wait();
}

TEST(TimeLeft, IsWrittenAsClocksWriteIt) {
  EXPECT_EQ(clock_text(0), "0:00");
  EXPECT_EQ(clock_text(6.2), "0:07");
  EXPECT_EQ(clock_text(125), "2:05");
  EXPECT_EQ(clock_text(3600 + 61), "1:01:01");
  EXPECT_EQ(clock_text(3600 * 51), "2 d 3 h");
  EXPECT_EQ(clock_text(1e300), "11574 d 1 h");
}

TEST(TimeLeft, IsNotKnownAtTheBeginningAndAtTheEnd) {
  const TimeLeft half(0.5);
  EXPECT_EQ(half.text(0.6), "");  // nothing has been measured
  EXPECT_TRUE(shardrec::test::eventually([&] { return !half.text(0.75).empty(); }, 10));
  EXPECT_EQ(half.text(0.5), "");
  EXPECT_EQ(half.text(1), "");
  EXPECT_EQ(half.text(0.75), "  0:01 left");
}

TEST(History, KeepsMeansInABoundedNumberOfPoints) {
  cli::History history;
  int64_t samples = 0;
  double loss = 0;
  double auc = 0;
  int64_t known = 0;
  constexpr int64_t kWindows = 12345;
  for (int64_t i = 1; i <= kWindows; ++i) {
    const int64_t size = 10 + i % 7;
    const bool has_both = i % 3 != 0;
    const HistoryPoint window{.step = 50 * i,
                              .samples = size,
                              .seconds = 0.25,
                              .loss = 1.0 / static_cast<double>(i),
                              .auc = has_both ? 0.5 + 1e-5 * static_cast<double>(i) : 0,
                              .known_samples = has_both ? size : 0};
    history.add(window);
    ASSERT_LE(history.points().size(), cli::History::kMost);
    samples += size;
    loss += window.loss * static_cast<double>(size);
    auc += window.auc * static_cast<double>(window.known_samples);
    known += window.known_samples;
  }
  EXPECT_GE(history.points().size(), cli::History::kMost / 2);
  int64_t found_samples = 0;
  double found_loss = 0;
  double found_auc = 0;
  double seconds = 0;
  int64_t step = 0;
  for (const HistoryPoint& point : history.points()) {
    EXPECT_GT(point.step, step);
    step = point.step;
    found_samples += point.samples;
    found_loss += point.loss * static_cast<double>(point.samples);
    found_auc += point.auc * static_cast<double>(point.known_samples);
    seconds += point.seconds;
  }
  EXPECT_EQ(step, 50 * kWindows);
  EXPECT_EQ(found_samples, samples);
  EXPECT_NEAR(found_loss, loss, 1e-9 * loss);
  EXPECT_NEAR(found_auc, auc, 1e-9 * auc);
  EXPECT_NEAR(seconds, 0.25 * kWindows, 1e-6);
  EXPECT_GT(known, 0);
}

}  // namespace
}  // namespace shardrec::cli::test
