// `inspect`: what a directory of checkpoints holds, whether every checksum is right, and how two
// checkpoints differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "command.h"
#include "saved_model.h"

namespace shardrec::cli::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Two runs on one log, and one of them as another number of ranks has saved it.
class Inspect : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new Scratch;
    ASSERT_EQ(run({"generate", "--rows", "1200", "--output", path("log.tsv")}).exit_code, 0);
    train({"--ranks", "2", "--sharding", "row_wise", "--save", path("run"), "--save-every", "5"});
    train({"--ranks", "2", "--learning-rate", "0.03", "--save", path("other")});
    train({"--ranks", "3", "--sharding", "column_wise", "--epochs", "0", "--load", path("run"),
           "--save", path("moved")});
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static void train(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "train",   "--format", "criteo",           "--data", path("log.tsv"),
        "--batch", "64",       "--rows-per-table", "50",     "--threads",
        "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    if (std::find(more.begin(), more.end(), "--dim") == more.end()) {
      arguments.insert(arguments.end(), {"--dim", "8"});
    }
    const Finished result = run(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static std::string path(const std::string& name) { return folder_->path(name); }
  static json inspected(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "inspect");
    arguments.emplace_back("--json");
    const Finished result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? result.json() : json();
  }
  static Scratch* folder_;
};
Scratch* Inspect::folder_ = nullptr;

TEST_F(Inspect, ShowsCheckpointsTablesLayersAndWhoSavedThem) {
  const Finished shown = run({"inspect", path("run")});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* text : {"latest", "saved by 2 ranks", "C26", "rowwise_adagrad", "bottom", "top",
                           "settings", "position", "KiB"}) {
    EXPECT_NE(shown.out.find(text), std::string::npos) << text << " is not in\n" << shown.out;
  }
  const json report = inspected({path("run")});
  ASSERT_EQ(report.at("checkpoints").size(), 3u);
  EXPECT_EQ(report.at("latest"), report.at("contents").at("step"));
  const json& tables = report.at("contents").at("collections").at(0).at("tables");
  ASSERT_EQ(tables.size(), 26u);
  EXPECT_EQ(tables.at(0).at("rows"), 50);
  EXPECT_EQ(tables.at(0).at("dim"), 8);
  int64_t bytes = 0;
  for (const json& box : report.at("contents").at("boxes")) {
    if (box.at("part") == "weights") bytes += box.at("bytes").get<int64_t>();
  }
  EXPECT_EQ(bytes, 26 * 50 * 8 * 4);
}

TEST_F(Inspect, LooksAtAnEarlierStep) {
  const json list = inspected({path("run")});
  const auto first = list.at("checkpoints").at(0).at("step").get<int64_t>();
  ASSERT_NE(first, list.at("latest").get<int64_t>());
  const json report = inspected({path("run"), "--step", std::to_string(first)});
  EXPECT_EQ(report.at("contents").at("step"), first);
  const Finished missing = run({"inspect", path("run"), "--step", "999999"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("NOT_FOUND"), std::string::npos) << missing.err;
  EXPECT_EQ(run({"inspect", "/nonexistent"}).exit_code, 1);
}

TEST_F(Inspect, VerifyReadsEveryByte) {
  EXPECT_TRUE(inspected({path("run"), "--verify"}).at("verified").get<bool>());
  const Scratch scratch;
  fs::copy(path("other"), scratch.path("copy"), fs::copy_options::recursive);
  int damaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path("copy"))) {
    if (entry.path().extension() != ".safetensors") continue;
    std::string bytes = read_file(entry.path().string());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    scratch.write(fs::relative(entry.path(), scratch.path("")).string(), bytes);
    ++damaged;
  }
  ASSERT_GT(damaged, 0);
  EXPECT_EQ(run({"inspect", scratch.path("copy")}).exit_code, 0);  // reads the manifest only
  const Finished refused = run({"inspect", scratch.path("copy"), "--verify"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("CORRUPT_DATA"), std::string::npos) << refused.err;
}

// Of the settings, which say how many ranks there were, and of the position nothing is expected.
std::set<std::string> kinds(const json& diff) {
  std::set<std::string> kinds;
  for (const json& difference : diff.at("differences")) kinds.insert(difference.at("what"));
  return kinds;
}

TEST_F(Inspect, TheSameTablesInOtherBoxesAreTheSame) {
  const json same = inspected({path("run"), "--diff", path("run")}).at("diff");
  EXPECT_TRUE(same.at("same").get<bool>());
  EXPECT_GE(same.at("compared").get<int>(), 26 * 2 + 10);
  const json moved = inspected({path("run"), "--diff", path("moved")}).at("diff");
  EXPECT_EQ(kinds(moved), (std::set<std::string>{"tensor"})) << moved;
  const Finished shown = run({"inspect", path("run"), "--diff", path("run")});
  EXPECT_NE(shown.out.find("the same: "), std::string::npos) << shown.out;
}

TEST_F(Inspect, DifferencesAreNamedWithTheLargest) {
  const json diff = inspected({path("run"), "--diff", path("other")}).at("diff");
  EXPECT_FALSE(diff.at("same").get<bool>());
  const SavedModel a = saved_model(path("run"));
  const SavedModel b = saved_model(path("other"));
  const auto largest = [&](const std::string& name) {
    double most = 0;
    for (size_t i = 0; i < a.at(name).size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(a.at(name)[i]) - b.at(name)[i]));
    }
    return most;
  };
  int seen = 0;
  for (const json& difference : diff.at("differences")) {
    if (difference.at("what") != "table") continue;
    const std::string part = difference.at("part");
    const std::string name =
        difference.at("name").get<std::string>() + (part == "weights" ? "/0" : "/1");
    EXPECT_EQ(difference.at("largest").get<double>(), largest(name)) << name;
    EXPECT_GT(difference.at("largest").get<double>(), 0) << name;
    ++seen;
  }
  EXPECT_EQ(seen, 26 * 2);
  double layers = 0;
  for (const json& difference : diff.at("differences")) {
    if (difference.at("what") == "layers" && difference.at("largest").is_number()) {
      layers = std::max(layers, difference.at("largest").get<double>());
    }
  }
  double expected = 0;
  for (const auto& [name, values] : a) {
    if (name.starts_with("bottom/") || name.starts_with("top/")) {
      expected = std::max(expected, largest(name));
    }
  }
  EXPECT_EQ(layers, expected);
  const Finished shown = run({"inspect", path("run"), "--diff", path("other")});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_NE(shown.out.find("largest difference"), std::string::npos) << shown.out;
}

// What a run publishes is, with what it is a change of, what the run would have saved.
TEST_F(Inspect, DeltasAreShownAndComparedByTheirValues) {
  train({"--ranks", "2", "--sharding", "row_wise", "--save", path("published"), "--save-every",
         "10", "--publish-every", "5", "--keep", "0"});
  const json list = inspected({path("published"), "--verify"});
  std::map<int64_t, json> by_step;
  for (const json& entry : list.at("checkpoints")) by_step[entry.at("step")] = entry;
  ASSERT_TRUE(by_step.contains(15));
  // The first one is whole, as is every tenth; the one behind the end of the data, too.
  EXPECT_FALSE(by_step.at(5).contains("base"));
  EXPECT_FALSE(by_step.at(10).contains("base"));
  EXPECT_EQ(by_step.at(15).at("base"), by_step.at(10).at("commit"));
  EXPECT_LT(by_step.at(15).at("bytes").get<int64_t>(), by_step.at(10).at("bytes").get<int64_t>());
  const json delta = inspected({path("published"), "--step", "15"}).at("contents");
  EXPECT_EQ(delta.at("base").at("step"), 10);
  EXPECT_EQ(delta.at("base").at("deltas"), 1);
  const std::string of_15 =
      path("published") + "/" + by_step.at(15).at("directory").get<std::string>();
  train({"--ranks", "2", "--sharding", "row_wise", "--save", path("saved"), "--save-every", "5",
         "--keep", "0"});
  const json diff = inspected({path("saved"), "--step", "15", "--diff", of_15}).at("diff");
  EXPECT_TRUE(diff.at("same").get<bool>()) << diff;
  EXPECT_FALSE(inspected({path("saved"), "--step", "10", "--diff", of_15})
                   .at("diff")
                   .at("same")
                   .get<bool>());
  const Finished shown = run({"inspect", path("published"), "--step", "15"});
  EXPECT_NE(shown.out.find("delta of step 10"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("changed rows"), std::string::npos) << shown.out;
  const Finished alone = run({"inspect", of_15});
  EXPECT_NE(alone.out.find("delta of step 10"), std::string::npos) << alone.out;
}

// For scorers: as good as a delta with states for them, and smaller.
TEST_F(Inspect, DeltasWithoutStatesAreShownAsSuch) {
  const auto publish = [&](const std::string& root, const std::string& what) {
    train({"--ranks", "2", "--sharding", "row_wise", "--save", path(root), "--save-every", "10",
           "--publish-every", "5", what, "--keep", "0"});
    const json list = inspected({path(root), "--verify"});
    std::map<int64_t, json> by_step;
    for (const json& entry : list.at("checkpoints")) {
      by_step[entry.at("step")] = entry;
    }
    return by_step.at(15);
  };
  const json with = publish("with_states", "--publish-states");
  const json without = publish("weights_alone", "--publish-weights");
  EXPECT_TRUE(with.at("states").get<bool>());
  EXPECT_FALSE(without.at("states").get<bool>());
  EXPECT_LT(without.at("bytes").get<int64_t>(), with.at("bytes").get<int64_t>());
  const Finished shown = run({"inspect", path("weights_alone"), "--step", "15"});
  EXPECT_NE(shown.out.find("delta of step 10, no states"), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("no states of tables' optimizers"), std::string::npos) << shown.out;
  const std::string of_15 = path("with_states") + "/" + with.at("directory").get<std::string>();
  const json diff = inspected({path("weights_alone"), "--step", "15", "--diff", of_15}).at("diff");
  EXPECT_FALSE(diff.at("differences").empty());
  for (const json& difference : diff.at("differences")) {
    EXPECT_TRUE(difference.at("part").get<std::string>().starts_with("state/")) << difference;
    EXPECT_EQ(difference.at("verdict"), "only in B") << difference;
  }
}

// A row that several ranks have some columns of is one row.
TEST_F(Inspect, ChangedRowsAreCountedOnceHoweverTheTableIsCut) {
  const auto lines_of = [&](const char* sharding) {
    train({"--ranks", "2", "--sharding", sharding, "--save", path(sharding), "--save-every", "10",
           "--publish-every", "5", "--keep", "0"});
    const Finished shown = run({"inspect", path(sharding), "--step", "15"});
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    std::vector<std::string> changed;  // the last word of each table's line
    std::istringstream text(shown.out);
    for (std::string line; std::getline(text, line);) {
      if (line.find("rowwise_adagrad") == std::string::npos) continue;
      line.erase(line.find_last_not_of(' ') + 1);
      changed.push_back(line.substr(line.find_last_of(' ') + 1));
    }
    return changed;
  };
  const std::vector<std::string> by_rows = lines_of("row_wise");
  ASSERT_EQ(by_rows.size(), 26u);
  EXPECT_NE(by_rows.front(), "0");
  EXPECT_EQ(lines_of("column_wise"), by_rows);
}

TEST_F(Inspect, OneCheckpointOfADirectoryIsADirectoryToo) {
  const json list = inspected({path("run")});
  const std::string first = list.at("checkpoints").at(0).at("directory");
  const json diff = inspected({path("run"), "--diff", path("run") + "/" + first}).at("diff");
  EXPECT_FALSE(diff.at("same").get<bool>());
  EXPECT_EQ(diff.at("step"), list.at("checkpoints").at(0).at("step"));
}

TEST_F(Inspect, TablesOfOtherShapesAreNotSubtracted) {
  train({"--dim", "4", "--epochs", "0", "--save", path("narrow")});
  const json diff = inspected({path("run"), "--diff", path("narrow")}).at("diff");
  int other = 0;
  for (const json& difference : diff.at("differences")) {
    if (difference.at("part") != "weights") continue;
    EXPECT_EQ(difference.at("verdict"), "other shape");
    EXPECT_TRUE(difference.at("largest").is_null());
    ++other;
  }
  EXPECT_EQ(other, 26);
}

}  // namespace
}  // namespace shardrec::cli::test
