// `shardrec serve-bench`: what it prints, and that it counts what it says.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "command.h"
#include "serve/latencies.h"
#include "serve/serve_load.h"
#include "support/eventually.h"

namespace shardrec::cli::test {
namespace {

using nlohmann::json;

constexpr int64_t kElements = 6 * 1000 * 16;  // of the tables of examples/cpp/dlrm.cpp

void train(const std::string& what, const std::string& directory) {
  const Scratch files;
  const Finished result = Running(files, {what, directory}, "", SHARDREC_DLRM_CPP).wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

json measured(std::vector<std::string> more) {
  std::vector<std::string> words{"serve-bench", "--json", "--seconds", "0.1", "--batch", "32"};
  words.insert(words.end(), more.begin(), more.end());
  const Finished result = run(words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  return result.json();
}

TEST(ServeBench, MeasuresLookupsAndPredictionsFromOneAndFromSeveralThreads) {
  const Scratch scratch;
  train("train", scratch.path("run"));
  const json line = measured({scratch.path("run"), "--threads", "2", "--scaling"});
  EXPECT_EQ(line.at("step"), 50);
  EXPECT_EQ(line.at("tables"), 6);
  EXPECT_EQ(line.at("table_bytes"), 4 * kElements);
  EXPECT_GE(line.at("bytes_read").get<int64_t>(), 4 * kElements);
  EXPECT_GT(line.at("open_ms"), 0);
  EXPECT_EQ(line.at("dense_columns"), 4);
  EXPECT_NEAR(line.at("ids"), 32 * 6 * 10.5, 32 * 6 * 0.5);
  std::set<std::pair<std::string, int>> lines;
  for (const json& result : line.at("results")) {
    lines.emplace(result.at("call"), result.at("threads"));
    const double seconds = result.at("seconds");
    EXPECT_GE(seconds, 0.1);
    EXPECT_NEAR(result.at("samples_per_second").get<double>() * seconds,
                32 * result.at("calls").get<double>(), 0.5);
    EXPECT_GT(result.at("calls"), 10);
    EXPECT_GT(result.at("p50_ms"), 0);
    EXPECT_LE(result.at("p50_ms"), result.at("p95_ms"));
    EXPECT_LE(result.at("p95_ms"), result.at("p99_ms"));
    EXPECT_LE(result.at("p99_ms"), result.at("max_ms"));
    EXPECT_EQ(result.at("scaling").is_null(), result.at("threads") == 1);
    EXPECT_EQ(result.at("steps"), json::parse("[50]"));
  }
  EXPECT_EQ(lines, (std::set<std::pair<std::string, int>>{
                       {"lookup", 1}, {"lookup", 2}, {"predict", 1}, {"predict", 2}}));
}

TEST(ServeBench, TablesInEachFormAndAStepOfSeveral) {
  const Scratch scratch;
  train("train", scratch.path("run"));
  train("resume", scratch.path("run"));
  const json coded = measured({scratch.path("run"), "--tables", "int8", "--threads", "1"});
  EXPECT_EQ(coded.at("step"), 100);
  EXPECT_EQ(coded.at("table_bytes"), kElements + 6 * 1000 * 8);
  EXPECT_EQ(coded.at("results").size(), 2U);
  const json mapped = measured({scratch.path("run"), "--tables", "mapped", "--step", "50",
                                "--calls", "predict", "--ids", "zipf:1.05", "--pooling", "0..3"});
  EXPECT_EQ(mapped.at("step"), 50);
  EXPECT_EQ(mapped.at("served_tables"), "mapped");
  EXPECT_EQ(mapped.at("results").size(), 1U);
  EXPECT_EQ(mapped.at("results").at(0).at("call"), "predict");
  const json named = measured({scratch.path("run"), "--collection", "tables", "--calls", "lookup"});
  EXPECT_EQ(named.at("results").size(), 1U);
  const Finished other =
      run({"serve-bench", scratch.path("run"), "--collection", "others", "--seconds", "0.1"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_NE(other.err.find("others"), std::string::npos) << other.err;
}

TEST(ServeBench, RefreshesWhileItGoesOnAndEndsInOrderWhenInterrupted) {
  const Scratch scratch;
  const Scratch files;
  train("train", scratch.path("run"));
  Running served(files, {"serve-bench", scratch.path("run"), "--refresh-every", "0.02", "--threads",
                         "2", "--seconds", "300", "--calls", "predict"});
  EXPECT_TRUE(shardrec::test::eventually(
      [&] { return read_file(files.path("stdout")).find("opened in") != std::string::npos; }));
  train("resume", scratch.path("run"));
  // Only its report, at the end, says which checkpoint its answers came from.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  served.interrupt();
  const Finished result = served.wait(20);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.out.find(", 1 of them to another checkpoint"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("answers came from step 50, 100\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\npredict        2  "), std::string::npos) << result.out;
}

TEST(ServeBench, MadeUpTablesInRoundsThatTheInputAsksFor) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("tmp"));
  setenv("TMPDIR", scratch.path("tmp").c_str(), 1);
  const Finished result = run({"serve-bench", "--table", "2x1000x8", "--table", "1x500x8",
                               "--threads", "2", "--batch", "16", "--pooling", "3", "--serve"},
                              "40\n7\n");
  const Finished wrong = run({"serve-bench", "--table", "1x10x8", "--serve"}, "many\n");
  unsetenv("TMPDIR");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("ready\n{")) << result.out;
  const json last = result.json();
  EXPECT_EQ(last.at("steps"), 7);
  EXPECT_EQ(last.at("ids"), 3 * 16 * 3);
  EXPECT_GT(last.at("step_ms_median"), 0);
  EXPECT_LE(last.at("step_ms_min"), last.at("step_ms_median"));
  EXPECT_GT(last.at("cpu_ms"), 0);
  EXPECT_NEAR(last.at("samples_per_second").get<double>() * last.at("rate_ms").get<double>(), 16e3,
              1);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.err.find("'many'"), std::string::npos) << wrong.err;
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path("tmp")));
}

TEST(ServeBench, RefusesWhatItCannotServe) {
  const Scratch scratch;
  EXPECT_EQ(run({"serve-bench"}).exit_code, 2);
  EXPECT_EQ(run({"serve-bench", "run", "--table", "1x10x4"}).exit_code, 2);
  EXPECT_EQ(run({"serve-bench", "run", "--tables", "disk"}).exit_code, 2);
  EXPECT_EQ(run({"serve-bench", "--table", "1x10x4", "--step", "1"}).exit_code, 2);
  EXPECT_EQ(run({"serve-bench", "run", "--serve", "--json"}).exit_code, 2);
  EXPECT_EQ(run({"serve-bench", "--table", "1x10"}).exit_code, 1);
  EXPECT_EQ(run({"serve-bench", "--table", "1x10x4", "--pooling", "5..2"}).exit_code, 1);
  const Finished missing = run({"serve-bench", scratch.path("none")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("none"), std::string::npos) << missing.err;
  // Tables of different dims have no dense half.
  const Finished scores = run({"serve-bench", "--table", "1x10x4", "--table", "1x10x8", "--calls",
                               "predict", "--seconds", "0"});
  EXPECT_EQ(scores.exit_code, 1);
  EXPECT_NE(scores.err.find("dense half"), std::string::npos) << scores.err;
}

TEST(ServeLoad, ACallThatFailsEndsAllThreadsAndIsThrown) {
  const Scratch scratch;
  train("train", scratch.path("run"));
  const Scorer scorer(scratch.path("run"));
  ServedModel model(scorer);
  ServeOptions options;
  options.threads = 3;
  options.batch = 8;
  options.batches = 2;
  const ServeLoad good(scorer, model, options);
  const ServeResult result = good.run(ServeCall::kLookup, 3, {.calls = 1000});
  EXPECT_EQ(result.latencies.count(), 1000);
  EXPECT_EQ(result.steps, std::set<int64_t>{50});
  EXPECT_GT(result.cpu, 0);
  model.width += 1;  // no output has such a shape
  const ServeLoad bad(scorer, model, options);
  EXPECT_THROW((void)bad.run(ServeCall::kLookup, 3, {.seconds = 300}), shardrec::Error);
}

TEST(Latencies, QuantilesAreWithinASixtyFourthAndTheLongestIsExact) {
  Latencies odd;
  Latencies even;
  EXPECT_EQ(odd.seconds(0.5), 0);
  EXPECT_EQ(odd.least(), 0);
  for (int64_t n = 1; n <= 100000; ++n) (n % 2 == 0 ? even : odd).add(n * 37);
  Latencies all;
  all.add(odd);
  all.add(even);
  EXPECT_EQ(all.count(), 100000);
  for (const double quantile : {0.001, 0.25, 0.5, 0.95, 0.99, 0.999}) {
    const double exact = quantile * 1e5 * 37e-9;
    EXPECT_GE(all.seconds(quantile), exact * (1 - 1e-9)) << quantile;
    EXPECT_LE(all.seconds(quantile), exact * (1 + 1.0 / 64) + 1e-9) << quantile;
  }
  EXPECT_DOUBLE_EQ(all.seconds(1), 3700000e-9);
  EXPECT_DOUBLE_EQ(all.least(), 37e-9);
  Latencies few;
  few.add(0);
  few.add(3'600'000'000'000);
  EXPECT_EQ(few.seconds(0.5), 0);
  EXPECT_DOUBLE_EQ(few.seconds(0.75), 3600);
}

}  // namespace
}  // namespace shardrec::cli::test
