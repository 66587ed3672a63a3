// `train --output`: a line per test sample, in the order of the data, that reads back to what the
// model said, the same for any number of ranks.
#include "train/predictions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "command.h"
#include "command/numbers.h"
#include "data/click_log.h"
#include "data/line_reader.h"

namespace shardrec::cli::test {
namespace {

class Predictions : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run({"generate", "--rows", "5000", "--output", scratch_.path("log.tsv")}).exit_code,
              0);
  }
  Finished train(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments{
        "train",   "--format", "criteo", "--data",    scratch_.path("log.tsv"),
        "--dim",   "8",        "--json", "--threads", "1",
        "--batch", "200"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  Scratch scratch_;
};

struct Line {
  int64_t row = -1;
  int label = -1;
  float probability = -1;
};

std::vector<Line> lines_of(const std::string& path) {
  std::vector<Line> lines;
  LineReader reader(path);
  for (std::string_view text; reader.next(text);) {
    const auto fields = split(text, '\t');
    EXPECT_EQ(fields.size(), 3u) << text;
    if (fields.size() != 3) break;
    Line line;
    line.row = parse_integer(fields[0]).value_or(-1);
    line.label = static_cast<int>(parse_integer(fields[1]).value_or(-1));
    std::from_chars(fields[2].data(), fields[2].data() + fields[2].size(), line.probability);
    lines.push_back(line);
  }
  return lines;
}

// AUC with ties as halves.
double auc_of(const std::vector<Line>& lines) {
  double pairs = 0;
  double right = 0;
  for (const Line& a : lines) {
    for (const Line& b : lines) {
      if (a.label != 1 || b.label != 0) continue;
      pairs += 1;
      right += a.probability > b.probability ? 1 : a.probability == b.probability ? 0.5 : 0;
    }
  }
  return right / pairs;
}

TEST_F(Predictions, AreOfTheTestSamplesInTheOrderOfTheDataAndGiveTheReportedAuc) {
  const std::string file = scratch_.path("predictions.tsv");
  const Finished result = train({"--ranks", "2", "--output", file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Line> lines = lines_of(file);

  std::vector<std::string> log;
  std::istringstream text(read_file(scratch_.path("log.tsv")));
  for (std::string line; std::getline(text, line);) log.push_back(line);
  size_t next = 0;
  for (size_t row = 0; row < log.size(); ++row) {
    if (!is_test_row(0, row)) continue;
    ASSERT_LT(next, lines.size());
    EXPECT_EQ(lines[next].row, static_cast<int64_t>(row));
    EXPECT_EQ(lines[next].label, log[row][0] - '0');
    ++next;
  }
  EXPECT_EQ(next, lines.size());
  EXPECT_EQ(result.json().at("test_samples").get<size_t>(), lines.size());
  EXPECT_NEAR(auc_of(lines), result.json().at("test_auc").get<double>(), 1e-12);
}

TEST_F(Predictions, OfOneModelAreTheSameBytesForAnyNumberOfRanks) {
  ASSERT_EQ(train({"--save", scratch_.path("model")}).exit_code, 0);
  const auto predict = [&](const std::string& ranks, const std::string& engine) {
    const std::string file = scratch_.path("ranks" + ranks);
    const Finished result = train({"--load", scratch_.path("model"), "--epochs", "0", "--ranks",
                                   ranks, "--engine", engine, "--output", file});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_file(file);
  };
  const std::string one = predict("1", "local");
  EXPECT_GT(one.size(), 10000u);
  EXPECT_TRUE(predict("2", "local") == one);
  EXPECT_TRUE(predict("3", "local") == one);
  EXPECT_TRUE(predict("7", "local") == one);  // some ranks have no samples
  const Finished version = run({"--version"});
  if (version.out.find("gloo") != std::string::npos) {
    EXPECT_TRUE(predict("2", "gloo") == one);
  }
}

TEST_F(Predictions, AreThereWholeOrNotAtAll) {
  const Finished refused = train({"--output", scratch_.path("no/such/folder")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find(scratch_.path("no/such/folder")), std::string::npos) << refused.err;
  EXPECT_EQ(refused.err.find("epoch"), std::string::npos) << "said after the training";

  scratch_.write("earlier", "of an earlier run\n");
  EXPECT_EQ(train({"--output", scratch_.path("earlier"), "--load", "/nowhere"}).exit_code, 1);
  EXPECT_EQ(read_file(scratch_.path("earlier")), "of an earlier run\n");
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("earlier.part")));
}

TEST(PredictionFile, ReadsBackToTheSameFloatAndMayBeCompressed) {
  const Scratch scratch;
  Samples samples;
  std::vector<float> probabilities;
  for (int i = 0; i < 2000; ++i) {
    samples.add(Sample{.label = i % 2 == 0 ? 1.0F : 0.0F, .row = 3 * i});
    probabilities.push_back(1.0F / static_cast<float>(i + 1) / static_cast<float>(1 << (i % 30)));
  }
  for (const char* name : {"plain", "compressed.gz"}) {
    PredictionFile file(scratch.path(name));
    file.add(samples, probabilities);
    EXPECT_FALSE(std::filesystem::exists(scratch.path(name)));
    file.finish();
    const std::vector<Line> lines = lines_of(scratch.path(name));
    ASSERT_EQ(lines.size(), 2000u);
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i].row, samples.row(static_cast<int64_t>(i)));
      EXPECT_EQ(lines[i].label, i % 2 == 0 ? 1 : 0);
      EXPECT_EQ(lines[i].probability, probabilities[i]);
    }
  }
  EXPECT_LT(std::filesystem::file_size(scratch.path("compressed.gz")),
            std::filesystem::file_size(scratch.path("plain")));
}

}  // namespace
}  // namespace shardrec::cli::test
