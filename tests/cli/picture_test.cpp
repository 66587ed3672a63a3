// `shardrec plan --picture`: an SVG file that is XML, whatever tables are called, says what the table of the plan
// says, and stays small.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"

namespace shardrec::cli::test {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class PlanPicture : public ::testing::Test {
 protected:
  // The picture, read back as XML: a line for each element, with what it shows.
  std::string draw(const std::string& model, std::vector<std::string> arguments) {
    scratch_.write("model.json", model);
    arguments.insert(arguments.begin(), {"plan", "--model", scratch_.path("model.json"),
                                         "--picture", scratch_.path("plan.svg")});
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    svg_ = read_file(scratch_.path("plan.svg"));
    const char* const kRead =
        "import sys, xml.etree.ElementTree as tree\n"
        "for e in tree.parse(sys.argv[1]).getroot().iter():\n"
        "  name = e.tag.split('}')[1]\n"
        "  print(name, e.get('class') or '', (e.text or '').strip() if name != 'style' else '')\n";
    const Finished read =
        Running(scratch_, {"-c", kRead, scratch_.path("plan.svg")}, "", "/usr/bin/python3").wait();
    EXPECT_EQ(read.exit_code, 0) << read.err;
    return read.out;
  }

  Scratch scratch_;
  std::string svg_;
};

TEST_F(PlanPicture, ShowsEachBoxAndEachRank) {
  const std::string seen = draw(R"({"format": "shardrec-model-1",
    "optimizer": {"type": "rowwise_adagrad"},
    "tables": [{"name": "<b> & \"c\" 'd' \uffff", "rows": 4096, "dim": 64},
               {"name": "t2", "rows": 1024, "dim": 64}]})",
                                {"--ranks", "2", "--sharding", "row_wise"});
  EXPECT_EQ(count(seen, "rect box"), 4) << seen;
  EXPECT_EQ(count(seen, "rect bar"), 2) << seen;
  EXPECT_NE(seen.find("text title 2 tables on 2 ranks, 1.3 MiB of weights and optimizer states\n"),
            std::string::npos)
      << seen;
  EXPECT_NE(seen.find("text  <b> & \"c\" 'd' ?\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("text quiet 4,096 x 64, 1.0 MiB\n"), std::string::npos) << seen;
  EXPECT_NE(seen.find("title  rank 1: rows 2,048 to 4,095, columns 0 to 63, 520 KiB\n"),
            std::string::npos)
      << seen;
  EXPECT_NE(seen.find("title  rank 0: 650 KiB\n"), std::string::npos) << seen;
  EXPECT_EQ(count(svg_, "http"), 1) << "nothing but the name of the format: " << svg_;
  EXPECT_EQ(count(svg_, "prefers-color-scheme: dark"), 1);
}

TEST_F(PlanPicture, ShowsAReplicatedTableOnceForAllRanks) {
  const std::string seen = draw(R"({"format": "shardrec-model-1",
    "tables": [{"name": "t", "rows": 100, "dim": 4}]})",
                                {"--ranks", "3", "--sharding", "data_parallel"});
  EXPECT_EQ(count(seen, "rect box"), 1) << seen;
  EXPECT_NE(seen.find("text inside every rank\n"), std::string::npos) << seen;
  EXPECT_EQ(count(seen, "rect bar"), 3) << seen;
}

TEST_F(PlanPicture, StaysSmallAndCountsWhatItLeavesOut) {
  nlohmann::json model{{"format", "shardrec-model-1"}, {"tables", nlohmann::json::array()}};
  for (int t = 0; t < 45; ++t) {
    model["tables"].push_back(
        {{"name", std::string(200, 'x') + std::to_string(t)}, {"rows", 4096}, {"dim", 8}});
  }
  const std::string seen = draw(model.dump(), {"--ranks", "300", "--sharding", "row_wise"});
  EXPECT_LT(svg_.size(), size_t{3} << 20);
  EXPECT_EQ(count(seen, "rect box"), 40 * 256);
  EXPECT_EQ(count(seen, "rect rest"), 40);
  EXPECT_EQ(count(seen, "title  37 more boxes\n"), 40);
  EXPECT_EQ(count(seen, "rect bar"), 64);
  EXPECT_EQ(count(seen, "text quiet and 5 more tables, 640 KiB\n"), 1) << seen.substr(0, 2000);
  EXPECT_EQ(count(seen, "text quiet and 236 more ranks; the largest of all has 19.7 KiB\n"), 1);
}

TEST_F(PlanPicture, SaysWhereItCannotBeWritten) {
  scratch_.write("model.json", R"({"format": "shardrec-model-1",
    "tables": [{"name": "t", "rows": 100, "dim": 4}]})");
  const std::string path = scratch_.path("no/such/folder.svg");
  const Finished finished =
      run({"plan", "--model", scratch_.path("model.json"), "--picture", path});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.err.find(path + " cannot be written."), std::string::npos) << finished.err;
}

}  // namespace
}  // namespace shardrec::cli::test
