// `shardrec bench`: the line of JSON, and the ids it measures with.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench_ids.h"
#include "command.h"
#include "counter_random.h"

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

TEST(Bench, RefusesWhatItCannotMeasure) {
  EXPECT_EQ(run({"bench", "lookup", "--rows", "10", "--pooling", "5..2"}).exit_code, 1);
  EXPECT_EQ(run({"bench", "lookup", "--rows", "10", "--ids", "zipf:x"}).exit_code, 1);
  EXPECT_EQ(run({"bench", "lookup", "--rows", "10", "--dtype", "int32"}).exit_code, 1);
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
