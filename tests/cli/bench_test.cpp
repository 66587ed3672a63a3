// `shardrec bench`: the line of JSON, and the ids it measures with.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/bench_ids.h"
#include "command.h"
#include "data/counter_random.h"

namespace shardrec::cli::test {
namespace {

void expect_times(const nlohmann::json& json) {
  for (const char* name : {"begin", "forward", "backward", "step"}) {
    const double least = json.at(std::string(name) + "_ms_min");
    EXPECT_GT(least, 0) << name;
    EXPECT_GE(json.at(std::string(name) + "_ms_median").get<double>(), least) << name;
  }
  EXPECT_GE(json.at("steps").get<int>(), 5);
  EXPECT_GE(json.at("forward_ms_median").get<double>(), json.at("begin_ms_min").get<double>());
  EXPECT_GT(json.at("update_ms_median"), 0);
  EXPECT_LE(json.at("update_ms_median").get<double>(), json.at("step_ms_median").get<double>());
  EXPECT_GT(json.at("index_plan_ms_median"), 0);
  EXPECT_GT(json.at("cpu_ms_median"), 0);
  EXPECT_GT(json.at("cpu_over_wall"), 0);
  EXPECT_GT(json.at("create_ms"), 0);
  EXPECT_GT(json.at("destroy_ms"), 0);
}

std::vector<nlohmann::json> lines_of(const std::string& out) {
  std::istringstream stream(out);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line == "ready" ? nlohmann::json(line) : nlohmann::json::parse(line));
  }
  return lines;
}

TEST(Bench, LookupPrintsOneLineOfJson) {
  const Finished result =
      run({"bench", "lookup", "--tables", "3", "--rows", "1000", "--dim", "16", "--batch", "64",
           "--pooling", "4", "--optimizer", "sgd", "--threads", "1", "--seconds", "0.05"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  const auto json = result.json();
  expect_times(json);
  EXPECT_EQ(json.at("ids"), 3 * 64 * 4);
  const double unique = json.at("unique_rows");
  // Mean over batches of the distinct rows of 256 draws out of 1000, three tables.
  EXPECT_NEAR(unique, 3 * 1000 * (1 - std::pow(1 - 1e-3, 256)), 30);
}

TEST(Bench, StepRunsOnSeveralRanksUnderAnyPlan) {
  const Finished result =
      run({"bench",   "step",    "--tables",   "3",         "--rows",    "1000",  "--dim",
           "8",       "--batch", "65",         "--pooling", "0..7",      "--ids", "zipf:1.05",
           "--ranks", "3",       "--sharding", "mixed",     "--seconds", "0.05"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_times(result.json());
  EXPECT_GT(result.json().at("bytes_min").get<int64_t>(), 0);
}

TEST(Bench, OneThreadUsesOneProcessor) {
  const Finished result =
      run({"bench", "lookup", "--tables", "2", "--rows", "20000", "--dim", "64", "--batch", "1024",
           "--pooling", "10", "--threads", "1", "--seconds", "0.1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LE(result.json().at("cpu_over_wall"), 1.1);
}

TEST(Bench, TablesOfSeveralSizes) {
  const Finished result = run({"bench",
                               "step",
                               "--table",
                               "2x100x8",
                               "--table",
                               "1x1000x16",
                               "--batch",
                               "32",
                               "--ids",
                               "zipf:1.05",
                               "--ranks",
                               "2",
                               "--sharding",
                               "data_parallel",
                               "--pooling",
                               "4",
                               "--replication",
                               "rows",
                               "--forward-compression",
                               "float16",
                               "--backward-compression",
                               "int8",
                               "--dtype",
                               "bfloat16",
                               "--output-dtype",
                               "float16",
                               "--optimizer",
                               "adagrad",
                               "--row-statistics",
                               "shard",
                               "--no-borrow",
                               "--seconds",
                               "0.05"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = result.json();
  expect_times(json);
  EXPECT_EQ(json.at("tables"), 3);
  EXPECT_EQ(json.at("sizes"), nlohmann::json::parse(R"(["2x100x8", "1x1000x16"])"));
  EXPECT_EQ(json.at("ids"), 3 * 32 * 4);
  EXPECT_EQ(json.at("borrow"), false);
  EXPECT_EQ(json.at("forward_compression"), "float16");
  EXPECT_EQ(json.at("backward_compression"), "int8");
  const int64_t unique = json.at("unique_rows");
  EXPECT_LT(unique, 3 * 32 * 4);
  // Ids, output gradients and, at the least, an element of weights and of state of each row.
  EXPECT_GT(json.at("backward_bytes_min"), 8 * 3 * 32 * 4 + 2 * 32 * 32 + unique * 8 * (4 + 8));
}

TEST(Bench, ServesRoundsOfStepsUntilItsInputEnds) {
  const Finished result = run({"bench", "step", "--tables", "2", "--rows", "1000", "--dim", "8",
                               "--batch", "64", "--pooling", "3", "--ranks", "2", "--serve"},
                              "3\n1\n6\n");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto lines = lines_of(result.out);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "ready");
  EXPECT_EQ(lines[1].at("steps"), 3);
  EXPECT_EQ(lines[2].at("steps"), 1);
  EXPECT_EQ(lines[3].at("steps"), 6);
  EXPECT_EQ(lines[2].at("step_ms_median"), lines[2].at("step_ms_min"));
  EXPECT_GT(lines[3].at("step_ms_median"), 0);
}

TEST(Bench, ARoundThatIsNoNumberEndsEveryRank) {
  const Finished result = run({"bench", "step", "--tables", "1", "--rows", "10", "--dim", "4",
                               "--batch", "4", "--pooling", "1", "--ranks", "3", "--serve"},
                              "2\nmany\n");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("'many'"), std::string::npos) << result.err;
}

TEST(Bench, RefusesWhatItCannotMeasure) {
  EXPECT_EQ(run({"bench", "lookup", "--rows", "10", "--pooling", "5..2"}).exit_code, 1);
  EXPECT_EQ(run({"bench", "lookup", "--rows", "10", "--ids", "zipf:x"}).exit_code, 1);
  EXPECT_EQ(run({"bench", "lookup", "--rows", "10", "--dtype", "int32"}).exit_code, 1);
  EXPECT_EQ(run({"bench", "lookup", "--rows", "10", "--output-dtype", "int8"}).exit_code, 1);
  EXPECT_EQ(run({"bench", "lookup", "--rows", "10", "--row-statistics", "all"}).exit_code, 1);
  for (const char* size : {"2x4096", "x10x10", "0x10x10", "2x10x-4", "2x10x4x1", "tables"}) {
    const Finished result = run({"bench", "lookup", "--table", size});
    EXPECT_EQ(result.exit_code, 1) << size;
    EXPECT_NE(result.err.find("2x4096x64"), std::string::npos) << result.err;
  }
  EXPECT_EQ(run({"bench", "lookup", "--table", "2x10x4", "--rows", "10"}).exit_code, 2);
  EXPECT_EQ(run({"bench"}).exit_code, 2);
}

TEST(BoundedZipf, HasTheFrequenciesOfItsLaw) {
  for (const double exponent : {0.5, 1.0, 1.05, 2.0}) {
    constexpr int kBound = 50;
    constexpr int kDraws = 200000;
    const BoundedZipf zipf(exponent, kBound);
    CounterRandom bits(3);
    std::vector<int> counts(kBound + 1, 0);
    for (int i = 0; i < kDraws; ++i) {
      const int64_t k = zipf.draw([&] { return unit_real(bits.next()); });
      ASSERT_GE(k, 1);
      ASSERT_LE(k, kBound);
      ++counts[static_cast<size_t>(k)];
    }
    double total = 0;
    for (int k = 1; k <= kBound; ++k) total += std::pow(k, -exponent);
    for (int k = 1; k <= kBound; ++k) {
      const double p = std::pow(k, -exponent) / total;
      EXPECT_NEAR(counts[static_cast<size_t>(k)], p * kDraws, 5 * std::sqrt(p * kDraws))
          << exponent << " " << k;
    }
  }
}

}  // namespace
}  // namespace shardrec::cli::test
