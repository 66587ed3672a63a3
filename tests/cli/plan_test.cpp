// `shardrec plan`: TorchRec's tutorial with four tables on two ranks, as people and as machines
// read it, and what it says of files that are none.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"

namespace shardrec::cli::test {
namespace {

constexpr const char* kModel = R"({"format": "shardrec-model-1",
  "optimizer": {"type": "rowwise_adagrad"},
  "tables": [{"name": "t1", "rows": 4096, "dim": 64}, {"name": "t2", "rows": 4096, "dim": 64},
             {"name": "t3", "rows": 1024, "dim": 64}, {"name": "t4", "rows": 1024, "dim": 64}]})";

class PlanCommand : public ::testing::Test {
 protected:
  PlanCommand() { scratch_.write("model.json", kModel); }

  Finished plan(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"plan", "--model", scratch_.path("model.json")});
    return run(arguments);
  }

  Scratch scratch_;
};

TEST_F(PlanCommand, PrintsTablesThatAreHalved) {
  const Finished rows = plan({"--ranks", "2", "--sharding", "row_wise"});
  ASSERT_EQ(rows.exit_code, 0) << rows.err;
  EXPECT_EQ(rows.out,
            "table  rank  rows       columns    weights   states      total\n"
            "-----  ----  ---------  -------  ---------  -------  ---------\n"
            "t1        0  0-2047     0-63     512.0 KiB  8.0 KiB  520.0 KiB\n"
            "t1        1  2048-4095  0-63     512.0 KiB  8.0 KiB  520.0 KiB\n"
            "t2        0  0-2047     0-63     512.0 KiB  8.0 KiB  520.0 KiB\n"
            "t2        1  2048-4095  0-63     512.0 KiB  8.0 KiB  520.0 KiB\n"
            "t3        0  0-511      0-63     128.0 KiB  2.0 KiB  130.0 KiB\n"
            "t3        1  512-1023   0-63     128.0 KiB  2.0 KiB  130.0 KiB\n"
            "t4        0  0-511      0-63     128.0 KiB  2.0 KiB  130.0 KiB\n"
            "t4        1  512-1023   0-63     128.0 KiB  2.0 KiB  130.0 KiB\n"
            "\n"
            "table  rows  dim    weights    states      total  sharding  boxes  ranks\n"
            "t1     4096   64    1.0 MiB  16.0 KiB    1.0 MiB  row_wise      2  0-1\n"
            "t2     4096   64    1.0 MiB  16.0 KiB    1.0 MiB  row_wise      2  0-1\n"
            "t3     1024   64  256.0 KiB   4.0 KiB  260.0 KiB  row_wise      2  0-1\n"
            "t4     1024   64  256.0 KiB   4.0 KiB  260.0 KiB  row_wise      2  0-1\n"
            "4 tables, 2.5 MiB of weights, 40.0 KiB of optimizer states, on 2 ranks, 2 per node\n"
            "\n"
            "rank  weights    states    total\n"
            "   0  1.2 MiB  20.0 KiB  1.3 MiB\n"
            "   1  1.2 MiB  20.0 KiB  1.3 MiB\n"
            "largest rank: 1.3 MiB, 1.00 x the mean\n");

  const Finished columns = plan({"--ranks", "2", "--sharding", "column_wise"});
  ASSERT_EQ(columns.exit_code, 0) << columns.err;
  EXPECT_NE(columns.out.find("t1        0  0-4095  0-31     512.0 KiB  16.0 KiB  528.0 KiB\n"
                             "t1        1  0-4095  32-63    512.0 KiB  16.0 KiB  528.0 KiB\n"),
            std::string::npos)
      << columns.out;
}

TEST_F(PlanCommand, PrintsReplicatedTablesForEachRank) {
  const Finished finished = plan({"--ranks", "2", "--sharding", "data_parallel"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.out.find("t3     each  0-1023  0-63     256.0 KiB   4.0 KiB  260.0 KiB\n"),
            std::string::npos)
      << finished.out;
  const nlohmann::json json =
      plan({"--ranks", "2", "--sharding", "data_parallel", "--json"}).json();
  EXPECT_EQ(json.at("tables").at(2).at("total_bytes"), 2 * 260 * 1024);
  EXPECT_EQ(json.at("ranks").at(1).at("total_bytes"), 2 * (1040 + 260) * 1024);
}

TEST_F(PlanCommand, EndsWithThePlanAndItsBytesAsJson) {
  const Finished finished = plan({"--ranks", "2", "--sharding", "table_wise", "--json", "--output",
                                  scratch_.path("plan.json")});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(std::count(finished.out.begin(), finished.out.end(), '\n'), 1) << finished.out;
  const nlohmann::json json = finished.json();
  std::map<std::string, std::vector<int>> boxes;
  for (const auto& table : json.at("plan").at("tables")) {
    for (const auto& box : table.at("boxes")) {
      boxes[table.at("name")] = {box.at("rank"), box.at("row"), box.at("rows"), box.at("col"),
                                 box.at("cols")};
    }
  }
  EXPECT_EQ(boxes, (std::map<std::string, std::vector<int>>{{"t1", {0, 0, 4096, 0, 64}},
                                                            {"t2", {1, 0, 4096, 0, 64}},
                                                            {"t3", {0, 0, 1024, 0, 64}},
                                                            {"t4", {1, 0, 1024, 0, 64}}}));
  const nlohmann::json rank = {
      {"rank", 1}, {"weight_bytes", 1310720}, {"state_bytes", 20480}, {"total_bytes", 1331200}};
  EXPECT_EQ(json.at("ranks").at(1), rank);
  const nlohmann::json table = {{"name", "t4"},
                                {"weight_bytes", 262144},
                                {"state_bytes", 4096},
                                {"total_bytes", 266240},
                                {"box_bytes", nlohmann::json::array({266240})}};
  EXPECT_EQ(json.at("tables").at(3), table);
  EXPECT_EQ(nlohmann::json::parse(read_file(scratch_.path("plan.json"))), json.at("plan"));
}

TEST_F(PlanCommand, TakesATopologyFromAFile) {
  scratch_.write("topology.json",
                 R"({"format": "shardrec-topology-1", "ranks": 4, "ranks_per_node": 2})");
  const Finished finished =
      plan({"--topology", scratch_.path("topology.json"), "--sharding", "grid", "--json"});
  ASSERT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.json().at("ranks").size(), 4U);
  EXPECT_EQ(finished.json().at("plan").at("ranks_per_node"), 2);
  EXPECT_EQ(plan({"--topology", scratch_.path("topology.json"), "--ranks", "2"}).exit_code, 2);
}

TEST_F(PlanCommand, RefusesAModelWithoutTables) {
  scratch_.write("model.json", R"({"format": "shardrec-model-1", "tables": []})");
  const Finished result = plan({"--ranks", "2", "--json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("has no tables to plan for"), std::string::npos) << result.err;
}

TEST_F(PlanCommand, SaysWhatIsWrongWithAFile) {
  const Finished missing = run({"plan", "--model", scratch_.path("none.json")});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("none.json cannot be read"), std::string::npos) << missing.err;
  scratch_.write("model.json", R"({"format": "shardrec-model-1", "tables": [{"name": "a"}]})");
  const Finished bad = plan({});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.err.find("model.json: model: tables[0]"), std::string::npos) << bad.err;
  scratch_.write("model.json", kModel);
  const Finished kind = plan({"--sharding", "sideways"});
  EXPECT_EQ(kind.exit_code, 1);
  EXPECT_NE(kind.err.find("table_wise, row_wise"), std::string::npos) << kind.err;
  EXPECT_EQ(plan({"--ranks", "2", "--ranks-per-node", "3"}).exit_code, 1);
  const Finished full = plan({"--output", scratch_.path("no/such/folder")});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_NE(full.err.find("cannot be written"), std::string::npos) << full.err;
}

}  // namespace
}  // namespace shardrec::cli::test
