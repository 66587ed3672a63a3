// `shardrec bench sync`: the line of JSON, and that touched rows are fewer bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "command.h"

namespace shardrec::cli::test {
namespace {

std::vector<std::string> sync(const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"bench",     "sync", "--tables",  "2", "--rows",    "4000",
                                     "--dim",     "16",   "--batch",   "8", "--pooling", "5",
                                     "--threads", "1",    "--batches", "1", "--syncs",   "3"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(BenchSync, CountsTheRowsOfEachKindOfSync) {
  const Finished result = run(sync({"--ranks", "4", "--sharding-group-size", "2"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
  const auto json = result.json();
  // Both replicas have all rows; a step, of the one batch that there is, touches 2 x 8 x 5 of them at most.
  EXPECT_EQ(json.at("full_rows"), 2 * 2 * 4000);
  EXPECT_GT(json.at("touched_rows"), 100);
  EXPECT_LE(json.at("touched_rows"), 2 * 2 * 8 * 5);
  EXPECT_EQ(json.at("overlapped_rows"), json.at("touched_rows"));
  // 16 columns and a sum of 4 bytes, of which each replica sends and gets back half.
  EXPECT_EQ(json.at("full_bytes"), 2 * 2 * 4000 * 17 * 4);
  EXPECT_GT(json.at("touched_bytes_ratio"), 20);
  EXPECT_GE(json.at("overlapped_steps"), 1);
  // Two replicas, each with a sum for every row; or with those of its half of the rows.
  EXPECT_EQ(json.at("exact_table_bytes"), 2 * 2 * 4000 * 17 * 4);
  EXPECT_EQ(json.at("sharded_table_bytes"), 2 * 2 * 4000 * 16 * 4 + 2 * 4000 * 4);
  EXPECT_EQ(json.at("touched_table_bytes"), json.at("exact_table_bytes"));
  EXPECT_LT(json.at("touched_step_bytes"), json.at("exact_step_bytes"));
  EXPECT_LT(json.at("touched_step_bytes"), json.at("sharded_step_bytes"));
  EXPECT_EQ(json.at("exact_step_sync_bytes"), 0);
  EXPECT_GT(json.at("sharded_step_sync_bytes"), 0);
  for (const char* const time : {"full", "touched", "overlapped"}) {
    EXPECT_GT(json.at(time + std::string("_ms_min")), 0) << time;
    EXPECT_GT(json.at(time + std::string("_step_ms_median")), 0) << time;
  }
}

TEST(BenchSync, RefusesAMeshOfOneReplica) {
  const Finished result = run(sync({"--ranks", "2", "--sharding-group-size", "2"}));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_NE(result.err.find("--sharding-group-size"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace shardrec::cli::test
