// The lines of JSON have the fields that examples/shardrec/JSON.md lists, and no others.
#include "support/json_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.h"

namespace shardrec::cli::test {
namespace {

using nlohmann::json;
using shardrec::test::expect_fields;
using shardrec::test::text_of_file;

// The section of JSON.md that follows the title.
std::string section(const std::string& title) {
  const std::string page = text_of_file(SHARDREC_JSON_PAGE);
  const size_t begin = page.find("\n## " + title + "\n");
  EXPECT_NE(begin, std::string::npos) << title;
  return page.substr(begin, page.find("\n## ", begin + 4) - begin);
}

json line_of(const std::vector<std::string>& arguments, const std::string& input = "") {
  const Finished finished = run(arguments, input);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return finished.json();
}

class JsonFields : public testing::Test {
 protected:
  void train(const std::string& folder, const std::vector<std::string>& more) {
    const std::string log = scratch_.path("log.tsv");
    ASSERT_EQ(run({"generate", "--rows", "600", "--output", log}).exit_code, 0);
    std::vector<std::string> arguments{"train",
                                       "--format",
                                       "criteo",
                                       "--data",
                                       log,
                                       "--batch",
                                       "64",
                                       "--threads",
                                       "1",
                                       "--json",
                                       "--save",
                                       scratch_.path(folder),
                                       "--rows-per-table",
                                       "100"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    trained_ = line_of(arguments);
  }

  const Scratch scratch_;
  json trained_;
};

TEST_F(JsonFields, OfTrainAndInspect) {
  train("one", {"--ranks", "2", "--sharding-group-size", "1"});
  expect_fields(trained_, section("train --json"));
  train("two", {"--seed", "5"});
  expect_fields(trained_, section("train --json"));
  scratch_.write("rules.json", R"({"version": 1, "extra": "ignore"})");
  train("three", {"--load", scratch_.path("two"), "--load-rules", scratch_.path("rules.json")});
  EXPECT_TRUE(trained_.at("load").is_object());  // listed and compared beside its function
  trained_.erase("load");
  expect_fields(trained_, section("train --json"));
  train("four", {"--ranks", "2", "--report", scratch_.path("report.html")});
  expect_fields(trained_, section("train --json"));
  json inspected = line_of(
      {"inspect", scratch_.path("one"), "--verify", "--diff", scratch_.path("two"), "--json"});
  EXPECT_TRUE(inspected.at("contents").is_object());  // listed and compared beside its function
  inspected.erase("contents");
  expect_fields(inspected, section("inspect --json"));
}

TEST_F(JsonFields, OfPlan) {
  const json model = {
      {"format", "shardrec-model-1"},
      {"tables",
       {{{"name", "a"}, {"rows", 10}, {"dim", 4}}, {{"name", "b"}, {"rows", 100000}, {"dim", 8}}}}};
  scratch_.write("model.json", model.dump());
  expect_fields(line_of({"plan", "--model", scratch_.path("model.json"), "--ranks", "2", "--json"}),
                section("plan --json"));
}

TEST_F(JsonFields, OfBench) {
  const std::vector<std::string> shape{"--batch", "16", "--threads", "1", "--seconds", "0.02"};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), shape.begin(), shape.end());
    return line_of(arguments);
  };
  expect_fields(with({"bench", "lookup", "--tables", "2", "--rows", "100", "--dim", "8"}),
                section("bench lookup, bench step"));
  expect_fields(with({"bench", "step", "--table", "2x100x8", "--ranks", "2"}),
                section("bench lookup, bench step"));
  const std::string report = scratch_.path("report.html");
  expect_fields(with({"bench", "step", "--table", "2x100x8", "--report", report}),
                section("bench lookup, bench step"));
  expect_fields(with({"bench", "dense", "--layers", "4-8-1"}), section("bench dense"));
  expect_fields(with({"bench", "dense", "--layers", "4-8-1", "--report", report}),
                section("bench dense"));
}

TEST_F(JsonFields, OfBenchSync) {
  expect_fields(line_of({"bench", "sync", "--tables", "2", "--rows", "500", "--dim", "8", "--batch",
                         "16", "--threads", "1", "--syncs", "2"}),
                section("bench sync"));
}

TEST_F(JsonFields, OfServeBench) {
  const std::vector<std::string> made_up{"serve-bench", "--table",   "2x100x8", "--batch",
                                         "8",           "--threads", "2"};
  std::vector<std::string> arguments = made_up;
  arguments.insert(arguments.end(), {"--json", "--scaling", "--seconds", "0.02"});
  expect_fields(line_of(arguments), section("serve-bench --json"));
  arguments = made_up;
  arguments.insert(arguments.end(), {"--serve", "--calls", "lookup"});
  expect_fields(line_of(arguments, "5\n"), section("serve-bench --serve"));
}

}  // namespace
}  // namespace shardrec::cli::test
