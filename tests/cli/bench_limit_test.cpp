// `shardrec bench`: what it says of the memory's limit, with made-up profiles.
#include "bench/bench_limit.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/bench_report.h"
#include "bench/bench_text.h"
#include "bench/device_calls.h"
#include "command.h"

namespace shardrec::cli::test {
namespace {

constexpr double kCache = 100000;

nlohmann::json rate(const char* access, int row_bytes, int bag, int threads, double gb_per_second) {
  return {{"access", access},
          {"row_bytes", row_bytes},
          {"bag_length", bag},
          {"threads", threads},
          {"gb_per_second", gb_per_second}};
}

// Rates that differ in all that they can depend on.
ProbedMemory made_up() {
  nlohmann::json profile;
  profile["machine"]["l3_bytes"] = kCache;
  profile["rows"] = {rate("gather", 64, 1, 2, 11),   rate("gather", 64, 20, 2, 12),
                     rate("gather", 256, 1, 2, 13),  rate("gather", 256, 20, 2, 14),
                     rate("gather", 256, 20, 1, 15), rate("update", 64, 0, 2, 21),
                     rate("update", 256, 0, 2, 23),  rate("update", 256, 0, 1, 25)};
  profile["copies"] = {{{"threads", 1}, {"gb_per_second", 30}},
                       {{"threads", 2}, {"gb_per_second", 31}}};
  return ProbedMemory(profile.dump());
}

// Of a device: no threads, copies by where they go.
ProbedMemory made_up_device() {
  nlohmann::json profile;
  profile["machine"] = {{"device", "cuda:0"}, {"l2_bytes", kCache}};
  profile["rows"] = {
      {{"access", "gather"}, {"row_bytes", 256}, {"bag_length", 1}, {"gb_per_second", 40}},
      {{"access", "gather"}, {"row_bytes", 256}, {"bag_length", 20}, {"gb_per_second", 50}}};
  profile["copies"] = {{{"from", "host"}, {"to", "device"}, {"gb_per_second", 3}},
                       {{"from", "device"}, {"to", "host"}, {"gb_per_second", 4}},
                       {{"from", "device"}, {"to", "device"}, {"gb_per_second", 60}}};
  return ProbedMemory(profile.dump());
}

BenchOptions options_of(const std::vector<BenchTable>& tables) {
  BenchOptions options;
  options.threads = 2;
  options.shape.tables = tables;
  options.shape.batch = 10;
  options.shape.lengths = {20, 20};
  return options;
}

nlohmann::json report(const BenchOptions& options, const std::vector<double>& ids,
                      const std::vector<double>& unique_rows, const ProbedMemory* probed) {
  RankTimes times{.ids = ids, .unique_rows = unique_rows};
  for (const double factor : {1.0, 3.0, 9.0}) {
    StepTimes step{.begin = 0.5e-3 * factor, .forward = 1e-3 * factor, .backward = 4e-3 * factor};
    step.phases[3] = 0.25e-3 * factor;  // the lookup
    step.phases[7] = 2e-3 * factor;     // the update
    times.steps.push_back(step);
  }
  return nlohmann::json::parse(bench_report(
      options, std::vector<RankTimes>(static_cast<size_t>(options.ranks), times), probed));
}

TEST(BenchLimit, SharesAreTheLeastBytesOverTimeAndProbedBandwidth) {
  const ProbedMemory probed = made_up();
  const auto json = report(options_of({{1000, 64}}), {200}, {150}, &probed);
  // The 150 rows of 256 bytes fit in the cache.
  const double forward = 8 * 200 + 150 * 256 + 10 * 256;
  const double backward = 8 * 200 + 10 * 256 + 2 * 150 * (256 + 4);
  EXPECT_EQ(json.at("forward_bytes_min"), forward);
  EXPECT_EQ(json.at("backward_bytes_min"), backward);
  EXPECT_DOUBLE_EQ(json.at("forward_limit_ms"), forward / 14e9 * 1e3);
  EXPECT_DOUBLE_EQ(json.at("backward_limit_ms"), backward / 23e9 * 1e3);
  // Medians of 3, 6 and 12 ms.
  EXPECT_DOUBLE_EQ(json.at("forward_share"), forward / (3e-3 * 14e9));
  EXPECT_DOUBLE_EQ(json.at("update_share"), backward / (6e-3 * 23e9));
  EXPECT_DOUBLE_EQ(json.at("backward_share"), backward / (12e-3 * 23e9));
}

TEST(BenchLimit, EachPartOfAStepHasItsBandwidthAndItsShare) {
  const ProbedMemory probed = made_up();
  const auto json = report(options_of({{1000, 64}}), {200}, {150}, &probed);
  const double begin = 8 * 200;
  const double forward = begin + 150 * 256 + 10 * 256;
  const double backward = begin + 10 * 256 + 2 * 150 * (256 + 4);
  EXPECT_EQ(json.at("begin_bytes_min"), begin);
  EXPECT_DOUBLE_EQ(json.at("begin_limit_ms"), begin / 31e9 * 1e3);
  EXPECT_DOUBLE_EQ(json.at("begin_share"), begin / (1.5e-3 * 31e9));
  EXPECT_DOUBLE_EQ(json.at("lookup_share"), forward / (0.75e-3 * 14e9));
  EXPECT_DOUBLE_EQ(json.at("step_share"), (forward / 14e9 + backward / 23e9) / 15e-3);
  EXPECT_DOUBLE_EQ(json.at("begin_gb_per_second"), begin / 1.5e-3 / 1e9);
  EXPECT_DOUBLE_EQ(json.at("forward_gb_per_second"), forward / 3e-3 / 1e9);
  EXPECT_DOUBLE_EQ(json.at("lookup_gb_per_second"), forward / 0.75e-3 / 1e9);
  EXPECT_DOUBLE_EQ(json.at("backward_gb_per_second"), backward / 12e-3 / 1e9);
  EXPECT_DOUBLE_EQ(json.at("update_gb_per_second"), backward / 6e-3 / 1e9);
  EXPECT_DOUBLE_EQ(json.at("step_gb_per_second"), (forward + backward) / 15e-3 / 1e9);
  EXPECT_EQ(json.at("limit"), "cached");
  EXPECT_FALSE(json.contains("kernel_launches"));
}

TEST(BenchLimit, RanksOnADeviceAreHeldAgainstItsMemory) {
  const ProbedMemory probed = made_up_device();
  BenchOptions options = options_of({{1000, 64}});
  options.ranks = 2;
  // Each rank has half of the ids and rows; made_up_device() has no threads.
  const auto json = report(options, {100}, {75}, &probed);
  const double forward = 8 * 200 + 150 * 256 + 10 * 256;
  EXPECT_DOUBLE_EQ(json.at("begin_share"), 8 * 200 / (1.5e-3 * 60e9));
  EXPECT_DOUBLE_EQ(json.at("forward_share"), forward / (3e-3 * 50e9));
  EXPECT_EQ(json.at("limit"), "probed");
}

// Without what aligns the columns.
std::string on_one_blank(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ' || result.empty() || result.back() != ' ') result += c;
  }
  return result;
}

TEST(BenchLimit, TheTableForPeopleSaysWhatTheLineSays) {
  const ProbedMemory probed = made_up_device();
  auto line = report(options_of({{1000, 64}}), {200}, {150}, &probed);
  line["kernel_launches"] = 20.0;
  line["driver_calls"] = 96.5;
  line["host_waits"] = 3.0;
  const auto says = [&](const std::string& words) {
    const std::string text = bench_text(line.dump());
    return on_one_blank(text).find(words) != std::string::npos ? testing::AssertionSuccess()
                                                               : testing::AssertionFailure()
                                                                     << "no '" << words << "' in\n"
                                                                     << text;
  };
  line["begin_limit_ms"] = 0.75;
  EXPECT_TRUE(says("\nbegin 1.500 0.500 0.002 0.0 0.750 0.0 %\n"));
  line["lookup_gb_per_second"] = 12.34;
  line["lookup_share"] = 0.816;
  EXPECT_TRUE(says("\n lookup 0.750 - 0.043 12.3 0.001 81.6 %\n"));
  EXPECT_TRUE(says("\n index plan 0.000 - - - - -\n"));
  line["forward_limit_ms"] = 1;
  line["backward_limit_ms"] = 2.25;
  EXPECT_TRUE(says("\nstep 15.000 5.000 0.125 0.0 3.250 0.0 %\n"));
  EXPECT_TRUE(
      says("\nA step of a rank: 20.0 kernel launches, 96.5 calls of the driver with them; "
           "in 3.0 the host waits"));
  line["forward_limit_ms"] = nullptr;
  line["lookup_share"] = nullptr;
  line["lookup_gb_per_second"] = nullptr;
  EXPECT_TRUE(says("\n lookup 0.750 - 0.043 - - -\n"));
}

TEST(DeviceCalls, AreReadFromTheLibrarysCounters) {
  const DeviceCalls calls = device_calls_from(
      "# TYPE shardrec_device_calls_total counter\nshardrec_device_calls_total 12\n"
      "shardrec_device_launches_total 5\nshardrec_device_waits_total 2\n");
  EXPECT_EQ(calls.calls, 12);
  EXPECT_EQ(calls.launches, 5);
  EXPECT_EQ(calls.waits, 2);
  EXPECT_THROW(device_calls_from("shardrec_device_calls_total 12\n"), std::runtime_error);
}

TEST(DeviceCalls, OfProcessesAddUp) {
  std::vector<RankTimes> ranks(2);
  for (RankTimes& rank : ranks) {
    rank.steps.resize(2);
    rank.calls = {.launches = 40, .calls = 100, .waits = 6};
    rank = times_from(numbers_of(rank), 0);
  }
  add_up_processes(ranks);
  EXPECT_EQ(ranks.front().calls.launches, 80);
  EXPECT_EQ(ranks.front().calls.calls, 200);
  EXPECT_EQ(ranks.front().calls.waits, 12);
}

TEST(BenchLimit, RowsBeyondTheCacheAreFetchedForEachIdAndTablesHaveTheirOwnBandwidth) {
  const ProbedMemory probed = made_up();
  BenchOptions options = options_of({{1000, 128}, {1000, 32}});
  options.dtype = "float16";
  options.output_dtype = "bfloat16";
  options.optimizer = "adam";
  options.shape.lengths = {1, 3};
  const auto json = report(options, {500, 400}, {300, 400}, &probed);
  ASSERT_GT(300 * 256 + 400 * 64, kCache);
  const double forward_wide = 8 * 500 + 500 * 256 + 10 * 256;
  const double forward_narrow = 8 * 400 + 400 * 64 + 10 * 64;
  const double backward_wide = 8 * 500 + 10 * 256 + 2 * 300 * (256 + 2 * 4 * 128);
  const double backward_narrow = 8 * 400 + 10 * 64 + 2 * 400 * (64 + 2 * 4 * 32);
  EXPECT_EQ(json.at("forward_bytes_min"), forward_wide + forward_narrow);
  EXPECT_EQ(json.at("backward_bytes_min"), backward_wide + backward_narrow);
  EXPECT_DOUBLE_EQ(json.at("forward_share"), (forward_wide / 13e9 + forward_narrow / 11e9) / 3e-3);
  EXPECT_DOUBLE_EQ(json.at("update_share"), (backward_wide / 23e9 + backward_narrow / 21e9) / 6e-3);
}

TEST(BenchLimit, TheNearestBagAndRowThatWereProbedCount) {
  const ProbedMemory probed = made_up();
  EXPECT_EQ(probed.gather(256, 20, 1), 15);
  EXPECT_EQ(probed.gather(4, 0, 2), 11);
  EXPECT_EQ(probed.gather(127, 4, 2), 11);
  EXPECT_EQ(probed.gather(129, 5, 2), 14);
  EXPECT_EQ(probed.gather(4096, 1000, 2), 14);
  EXPECT_EQ(probed.update(127, 2), 21);
  EXPECT_EQ(probed.update(129, 2), 23);
  EXPECT_EQ(probed.update(64, 1), 25);
}

TEST(BenchLimit, WithoutAProbeOfTheSameThreadsOrOnSeveralRanksThereIsNone) {
  const ProbedMemory probed = made_up();
  BenchOptions threads = options_of({{1000, 64}});
  threads.threads = 3;
  BenchOptions ranks = options_of({{1000, 64}});
  ranks.ranks = 2;
  for (const auto& json :
       {report(options_of({{1000, 64}}), {200}, {150}, nullptr),
        report(threads, {200}, {150}, &probed), report(ranks, {100}, {75}, &probed)}) {
    for (const char* name : {"forward_limit_ms", "backward_limit_ms", "forward_share",
                             "update_share", "backward_share"}) {
      EXPECT_TRUE(json.at(name).is_null()) << name;
    }
    EXPECT_EQ(json.at("backward_bytes_min"), 8 * 200 + 10 * 256 + 2 * 150 * (256 + 4));
  }
}

TEST(BenchLimit, TheCommandReadsTheProfileOfTheCache) {
  const Scratch scratch;
  const std::string cache = scratch.path("cache");
  const Finished stored =
      Running(scratch, {cache, "gather:64:1:1:3.5", "update:64:0:1:7.25", "update:64:0:2:1"}, "",
              SHARDREC_STORE_PROFILE)
          .wait();
  ASSERT_EQ(stored.exit_code, 0) << stored.err;
  const auto bench = [&](const std::string& directory, const char* threads) {
    setenv("SHARDREC_CACHE_DIR", directory.c_str(), 1);
    const Finished result =
        run({"bench", "lookup", "--tables", "3", "--rows", "1000", "--dim", "16", "--batch", "1",
             "--pooling", "1", "--threads", threads, "--seconds", "0.01"});
    unsetenv("SHARDREC_CACHE_DIR");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json();
  };
  const auto json = bench(cache, "1");
  // One id a table, so that all rows are different.
  const double forward = 3 * (8 + 64 + 64);
  const double backward = 3 * (8 + 64 + 2 * (64 + 4));
  EXPECT_DOUBLE_EQ(json.at("forward_share"),
                   forward / (1e6 * json.at("forward_ms_median").get<double>() * 3.5));
  EXPECT_DOUBLE_EQ(json.at("update_share"),
                   backward / (1e6 * json.at("update_ms_median").get<double>() * 7.25));
  EXPECT_DOUBLE_EQ(json.at("backward_share"),
                   backward / (1e6 * json.at("backward_ms_median").get<double>() * 7.25));
  const auto two = bench(cache, "2");
  EXPECT_TRUE(two.at("forward_share").is_null());  // two threads were probed with updates only
  EXPECT_TRUE(two.at("update_share").is_number());
  EXPECT_TRUE(bench(scratch.path("none"), "1").at("backward_share").is_null());
}

}  // namespace
}  // namespace shardrec::cli::test
