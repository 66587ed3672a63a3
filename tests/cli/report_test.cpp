// `train --report` and `bench --report`: pages that are XML, say what the line of JSON says, whatever names are like,
// and are written whole or not at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <shardrec/shardrec.hpp>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "report/chart.h"
#include "report/train_page.h"
#include "support/eventually.h"

namespace shardrec::cli::test {
namespace {

using nlohmann::json;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

class Report : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new Scratch;
    const Finished result = run({"generate", "--rows", "3000", "--output", data_->path("log.tsv")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  static void TearDownTestSuite() { delete data_; }

  [[nodiscard]] std::string page() const { return scratch_.path("report.html"); }

  // more: options, each with its values; they take the place of the test's own.
  [[nodiscard]] std::vector<std::string> train_arguments(
      const std::vector<std::string>& more) const {
    const std::vector<std::pair<std::string, std::string>> own{
        {"--data", data_->path("log.tsv")}, {"--batch", "64"},         {"--threads", "1"},
        {"--rows-per-table", "200"},        {"--progress-every", "5"}, {"--report", page()}};
    std::vector<std::string> arguments{"train", "--format", "criteo", "--json"};
    for (const auto& [option, value] : own) {
      if (std::find(more.begin(), more.end(), option) != more.end()) continue;
      arguments.insert(arguments.end(), {option, value});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // Compares all that the page shows with the line that was printed. Returns what report_page.py found, a line each.
  std::string checked(const std::string& line) {
    scratch_.write("line.json", line);
    const Finished read =
        Running(scratch_, {SHARDREC_REPORT_PAGE, page(), scratch_.path("line.json")}, "",
                "/usr/bin/python3")
            .wait();
    EXPECT_EQ(read.exit_code, 0) << read.out << read.err;
    return read.out;
  }

  json trained(const std::vector<std::string>& more) {
    const Finished result = run(train_arguments(more));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    if (result.exit_code != 0) return {};
    json line = result.json();
    found_ = checked(line.dump());
    return line;
  }

  static Scratch* data_;
  const Scratch scratch_;
  std::string found_;
};
Scratch* Report::data_ = nullptr;

TEST_F(Report, OfATrainingSaysWhatItsLineOfJsonSays) {
  const json line = trained({"--ranks", "2", "--sharding", "mixed"});
  for (const char* section : {"Over the steps", "Where the time went", "What lies where", "Memory",
                              "Counters", "The machine of rank 0", "Settings"}) {
    EXPECT_NE(found_.find(std::string("section ") + section + "\n"), std::string::npos) << found_;
  }
  EXPECT_NE(found_.find("charts 4\n"), std::string::npos) << found_;
  EXPECT_NE(found_.find("pictures 26\n"), std::string::npos) << found_;
  EXPECT_NE(found_.find("bars 5\n"), std::string::npos) << found_;

  // Numbers that other numbers of the same line confirm.
  int64_t samples = 0;
  double seconds = 0;
  double loss = 0;
  for (const json& point : line.at("history")) {
    samples += point.at("samples").get<int64_t>();
    seconds += point.at("seconds").get<double>();
    EXPECT_GT(point.at("auc").get<double>(), 0);
  }
  for (size_t i = 0; i < 5; ++i) loss += line.at("first_losses").at(i).get<double>() / 5;
  EXPECT_EQ(samples, line.at("train_samples"));
  EXPECT_EQ(line.at("history").back().at("step"), line.at("steps"));
  EXPECT_NEAR(line.at("history").front().at("loss").get<double>(), loss, 1e-6);
  EXPECT_NEAR(static_cast<double>(samples) / seconds, line.at("samples_per_second").get<double>(),
              0.02 * line.at("samples_per_second").get<double>());
  EXPECT_EQ(line.at("counters").at(0).at("name"), "shardrec_steps_total");
  EXPECT_EQ(line.at("counters").at(0).at("values"), json({line.at("steps"), line.at("steps")}));
  EXPECT_EQ(line.at("memory").at("process_peak_bytes").size(), 1u);
  EXPECT_EQ(line.at("machine").at("processors"), json::parse(capabilities_json()).at("processors"));
  double phases = 0;
  for (const json& phase : line.at("phases")) phases += phase.at("seconds").at(0).get<double>();
  EXPECT_LE(phases, line.at("seconds").get<double>());
  EXPECT_GT(phases, seconds);
}

TEST_F(Report, IsNotInTheLineOfJsonOfARunWithoutIt) {
  std::vector<std::string> arguments = train_arguments({});
  arguments.resize(arguments.size() - 2);  // --report
  const Finished result = run(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* field : {"started", "history", "phases", "plan", "machine"}) {
    EXPECT_FALSE(result.json().contains(field)) << field;
  }
}

TEST_F(Report, HoldsNamesOfFilesAsTheyAreWithoutTheirMeaning) {
  const std::string first = "<script>alert(1)<\\script> & 'a' \"b\".tsv";
  const std::string second = "line\nbreak \x01 \xff.tsv";
  for (const std::string& name : {first, second}) {
    std::filesystem::copy_file(data_->path("log.tsv"), scratch_.path(name));
  }
  const Finished result =
      run(train_arguments({"--data", scratch_.path(first), scratch_.path(second)}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json line = result.json();
  ASSERT_EQ(line.at("data").size(), 2u);
  EXPECT_EQ(line.at("data").at(0).at("file"), first);
  const std::string found = checked(line.dump());
  EXPECT_NE(found.find(first), std::string::npos) << found;
  EXPECT_NE(found.find("line break ? \xef\xbf\xbd.tsv"), std::string::npos) << found;
}

TEST_F(Report, HoldsNamesOfTablesAsTheyAreWithoutTheirMeaning) {
  json line = trained({"--ranks", "2", "--sharding", "row_wise"});
  const std::string elements = found_.substr(found_.find("elements "));
  const int64_t samples =
      line.at("train_samples").get<int64_t>() + line.at("test_samples").get<int64_t>();
  EXPECT_EQ(line.at("table_counters").at(0).at("values"), json(std::vector<int64_t>(26, samples)));
  const json& updated = line.at("table_counters").at(1).at("values");
  EXPECT_NE(updated.front(), updated.back()) << "C26 has 250 times as many values as C1";
  const std::string hostile = R"(</script><img src="x" onerror='alert(1)'><!-- ]]> & &lt; <b>)";
  for (const char* list : {"/plan/plan/tables/3/name", "/plan/tables/3/name", "/settings/2/value",
                           "/phases/1/name", "/counters/0/what", "/machine/processor"}) {
    line[json::json_pointer(list)] = hostile;
  }
  scratch_.write("report.html", train_page(line.dump()));
  const std::string found = checked(line.dump());
  EXPECT_EQ(found.substr(found.find("elements "), elements.find('\n')),
            elements.substr(0, elements.find('\n')));
  EXPECT_GE(count(found, hostile), 5u) << found;
}

TEST_F(Report, CountsTheRanksThatDoNotFit) {
  json line = trained({"--ranks", "2", "--sharding", "row_wise"});
  constexpr size_t kRanks = 1070;
  const auto repeat = [](json& values) {
    const json two = values;
    for (size_t rank = 2; rank < kRanks; ++rank) values.push_back(two[rank % 2]);
  };
  for (const char* list : {"phases", "table_phases"}) {
    for (json& phase : line[list]) repeat(phase["seconds"]);
  }
  for (json& counter : line["counters"]) repeat(counter["values"]);
  repeat(line["memory"]["table_bytes"]);
  repeat(line["memory"]["buffer_bytes"]);
  repeat(line["plan"]["ranks"]);
  scratch_.write("report.html", train_page(line.dump()));
  const std::string found = checked(line.dump());
  EXPECT_EQ(count(found, "and 1,006 more ranks"), 4u) << found;
  EXPECT_EQ(count(found, "and 1,054 more ranks"), 3u) << found;
  EXPECT_LT(read_file(page()).size(), size_t{1} << 20);
}

TEST_F(Report, OfAMeshSaysWhoIsInWhichGroup) {
  const json line = trained({"--ranks", "4", "--sharding-group-size", "2"});
  EXPECT_EQ(line.at("plan").at("ranks").size(), 2u);
  EXPECT_EQ(line.at("phases").at(0).at("seconds").size(), 4u);
  EXPECT_NE(found_.find("Each of 2 sharding groups"), std::string::npos) << found_;
  EXPECT_NE(found_.find("0, 2; 1, 3"), std::string::npos) << found_;
}

TEST_F(Report, OfProcessesIsWrittenByRankZero) {
  const Finished result = run(train_arguments({"--ranks", "2", "--engine", "gloo"}));
  if (result.err.find("which is not installed") != std::string::npos) {
    GTEST_SKIP() << "the plug-in of the engine gloo was not built";
  }
  ASSERT_EQ(result.exit_code, 0) << result.err;
  checked(result.json().dump());
  EXPECT_EQ(result.json().at("memory").at("process_peak_bytes").size(), 2u);
  EXPECT_FALSE(std::filesystem::exists(page() + ".part"));
}

TEST_F(Report, OfARunThatGoesOnBeginsWhereItGoesOn) {
  const json before = trained({"--epochs", "1", "--save", scratch_.path("run")});
  const json after = trained({"--epochs", "2", "--save", scratch_.path("run"), "--resume"});
  EXPECT_GT(after.at("history").front().at("step"), before.at("steps"));
  EXPECT_EQ(after.at("history").back().at("step"), after.at("steps"));
}

TEST_F(Report, OfAModelThatIsOnlyTestedHasNoSteps) {
  trained({"--save", scratch_.path("run")});
  const json line = trained({"--epochs", "0", "--load", scratch_.path("run")});
  EXPECT_EQ(line.at("history"), json::array());
  EXPECT_NE(found_.find("No step was made."), std::string::npos) << found_;
}

TEST_F(Report, OfAnInterruptedRunSaysSo) {
  Running command(scratch_, train_arguments({"--epochs", "100000", "--progress-every", "1"}));
  ASSERT_TRUE(shardrec::test::eventually(
      [&] { return command.err().find("step 3") != std::string::npos; }, 60))
      << command.err();
  command.interrupt();
  const Finished result = command.wait();
  ASSERT_EQ(result.exit_code, 130) << result.err;
  EXPECT_EQ(result.json().at("interrupted"), true);
  EXPECT_NE(checked(result.json().dump()).find("Stopped by an interrupt."), std::string::npos);
}

TEST_F(Report, IsRefusedBeforeTheTrainingWhereItCannotBeWritten) {
  const std::string nowhere = scratch_.path("no/such/folder.html");
  const Finished result = run(train_arguments({"--report", nowhere}));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "shardrec: " + nowhere +
                            " cannot be written: No such file or directory; --report needs the "
                            "path of a file in a directory that is there.\n");
  EXPECT_EQ(run(train_arguments({"--report", scratch_.path("")})).exit_code, 1);
}

TEST_F(Report, OfBeforeStaysWhereTheRunFails) {
  scratch_.write("report.html", "of before");
  const Finished result = run(train_arguments({"--learning-rate", "1e38"}));
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_NE(result.err.find("diverged"), std::string::npos) << result.err;
  EXPECT_EQ(read_file(page()), "of before");
  EXPECT_FALSE(std::filesystem::exists(page() + ".part"));
}

TEST_F(Report, OfBenchmarksSaysWhatTheirLineSays) {
  const std::vector<std::vector<std::string>> benchmarks{
      {"lookup", "--tables", "2", "--rows", "100", "--dim", "8"},
      {"step", "--table", "2x100x8", "--table", "1x50x4", "--ranks", "2"},
      {"dense", "--layers", "4-8-1", "--ranks", "2"}};
  for (const auto& benchmark : benchmarks) {
    std::vector<std::string> arguments{"bench"};
    arguments.insert(arguments.end(), benchmark.begin(), benchmark.end());
    arguments.insert(arguments.end(),
                     {"--batch", "16", "--threads", "1", "--seconds", "0.02", "--report", page()});
    const Finished result = run(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string found = checked(result.json().dump());
    EXPECT_NE(found.find("section Median time of a step and its parts\n"), std::string::npos)
        << found;
    EXPECT_NE(found.find("section The machine of rank 0\n"), std::string::npos) << found;
    EXPECT_NE(found.find("text shardrec bench " + benchmark.front()), std::string::npos) << found;
    // Each number and each text of the line is on the page.
    const std::string text = read_file(page());
    const json line = result.json();
    for (const auto& [field, value] : line.items()) {
      if (value.is_object() || field == "version") continue;
      const std::string pointer = "/" + field + (value.is_array() ? "/0" : "");
      EXPECT_NE(text.find("data-json=\"" + pointer + "\""), std::string::npos) << field;
    }
  }
}

TEST_F(Report, OfABenchmarkIsRefusedBeforeItWhereItCannotBeWritten) {
  for (const char* kind : {"lookup", "step", "dense"}) {
    const Finished result =
        run({"bench", kind, "--seconds", "5", "--report", scratch_.path("no/such/folder.html")});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_NE(result.err.find("cannot be written"), std::string::npos) << result.err;
    EXPECT_EQ(run({"bench", kind, "--serve", "--report", page()}).exit_code, 2) << kind;
  }
}

TEST_F(Report, TicksAreRoundNumbersAroundWhatIsShown) {
  using Numbers = std::vector<double>;
  EXPECT_EQ(ticks(0, 100), (Numbers{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(ticks(3, 4, 1), (Numbers{3, 4}));
  EXPECT_EQ(ticks(7, 7), Numbers{7});
  double least = -3;
  double most = -2.9;
  for (int i = 0; i < 500; ++i) {
    const Numbers values = ticks(least, most);
    EXPECT_LE(values.size(), 7u) << least << " to " << most;
    EXPECT_GE(values.size(), 3u) << least << " to " << most;
    EXPECT_LE(values.front(), least + 1e-6 * (most - least));
    EXPECT_GE(values.back(), most - 1e-6 * (most - least));
    const double range = (most - least) * (i % 2 == 0 ? 1.21 : 0.9);
    least += 0.013;
    most = least + range;
  }
}

}  // namespace
}  // namespace shardrec::cli::test
