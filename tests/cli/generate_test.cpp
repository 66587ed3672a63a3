// `shardrec generate`: the file is what its .meta.json says, computed again here from the printed
// numbers alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <shardrec/shardrec.hpp>
#include <sstream>

#include "command.h"
#include "command/numbers.h"

namespace shardrec::cli::test {
namespace {

constexpr int kRows = 40000;

struct Row {
  int label = 0;
  std::vector<double> counts;  // -1: missing
  std::vector<int> values;     // -1: missing
};

// The generated file, its tokens turned back into values, and its .meta.json.
class Generated : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new Scratch;
    result_ = new Finished(run({"generate", "--rows", std::to_string(kRows), "--seed", "11",
                                "--output", scratch_->path("log.tsv")}));
    ASSERT_EQ(result_->exit_code, 0) << result_->err;
    meta_ =
        new nlohmann::json(nlohmann::json::parse(read_file(scratch_->path("log.tsv.meta.json"))));
    rows_ = new std::vector<Row>(read_rows());
  }
  static void TearDownTestSuite() {
    delete rows_;
    delete meta_;
    delete result_;
    delete scratch_;
  }

  static std::vector<Row> read_rows() {
    std::vector<std::map<std::string, int, std::less<>>> tokens(26);
    for (size_t k = 0; k < 26; ++k) {
      for (uint64_t v = 0; v < (*meta_)["columns"][k]["values"].get<uint64_t>(); ++v) {
        unsigned char bytes[8] = {static_cast<unsigned char>(v),
                                  static_cast<unsigned char>(v >> 8)};
        std::ostringstream hex;
        hex.width(8);
        hex.fill('0');
        hex << std::hex << static_cast<uint32_t>(shardrec_hash64(k, bytes, 8));
        const bool is_new = tokens[k].emplace(hex.str(), static_cast<int>(v)).second;
        EXPECT_TRUE(is_new) << "two values of column " << k << " share a token";
      }
    }
    std::vector<Row> rows;
    std::istringstream file(read_file(scratch_->path("log.tsv")));
    for (std::string line; std::getline(file, line);) {
      const auto fields = split(line, '\t');
      EXPECT_EQ(fields.size(), 40u);
      Row row;
      row.label = fields[0] == "1" ? 1 : 0;
      for (size_t j = 1; j <= 13; ++j) {
        row.counts.push_back(fields[j].empty() ? -1.0
                                               : static_cast<double>(*parse_integer(fields[j])));
      }
      for (size_t k = 0; k < 26; ++k) {
        row.values.push_back(fields[14 + k].empty() ? -1 : tokens[k].find(fields[14 + k])->second);
      }
      rows.push_back(row);
    }
    return rows;
  }

  static double probability(const Row& row) {
    const nlohmann::json& meta = *meta_;
    double logit = meta["intercept"];
    for (size_t k = 0; k < 26; ++k) {
      if (row.values[k] >= 0) logit += meta["columns"][k]["weights"][row.values[k]].get<double>();
    }
    for (size_t j = 0; j < 13; ++j) {
      const auto& dense = meta["dense"][j];
      if (row.counts[j] < 0) continue;
      logit += dense["weight"].get<double>() *
               (std::log1p(row.counts[j]) - dense["mean"].get<double>()) /
               dense["deviation"].get<double>();
    }
    for (const auto& pair : meta["pairs"]) {
      double product = pair["coefficient"];
      for (const char* side : {"first", "second"}) {
        const size_t k = pair[side];
        product *= row.values[k] < 0 ? 0.0
                                     : meta["columns"][k]["weights"][row.values[k]].get<double>() /
                                           meta["value_deviation"].get<double>();
      }
      logit += product;
    }
    return 1 / (1 + std::exp(-logit));
  }

  static Scratch* scratch_;
  static Finished* result_;
  static nlohmann::json* meta_;
  static std::vector<Row>* rows_;
};
Scratch* Generated::scratch_ = nullptr;
Finished* Generated::result_ = nullptr;
nlohmann::json* Generated::meta_ = nullptr;
std::vector<Row>* Generated::rows_ = nullptr;

// Share of (click, no click) pairs in which the click has the larger probability.
double auc(std::vector<std::pair<double, int>> scored) {
  std::sort(scored.begin(), scored.end());
  double clicks = 0;
  double others = 0;
  double won = 0;
  for (const auto& [probability, label] : scored) {
    if (label == 1) {
      won += others;
      clicks += 1;
    } else {
      others += 1;
    }
  }
  return won / (clicks * others);
}

TEST_F(Generated, BestAucIsThatOfThePrintedParameters) {
  std::vector<std::pair<double, int>> all;
  std::vector<std::pair<double, int>> test;
  for (uint64_t i = 0; i < kRows; ++i) {
    const Row& row = (*rows_)[i];
    all.emplace_back(probability(row), row.label);
    const unsigned char bytes[8] = {static_cast<unsigned char>(i),
                                    static_cast<unsigned char>(i >> 8)};
    if (shardrec_hash64(0, bytes, 8) % 5 == 0) test.push_back(all.back());
  }
  EXPECT_NEAR((*meta_)["best_auc"].get<double>(), auc(all), 1e-6);
  EXPECT_NEAR((*meta_)["best_auc_test"].get<double>(), auc(test), 1e-6);
  EXPECT_NE(result_->out.find(fixed((*meta_)["best_auc"], 6)), std::string::npos);
  EXPECT_GT((*meta_)["best_auc"].get<double>(), 0.75);
}

TEST_F(Generated, LabelsAreDrawnFromTheProbabilities) {
  double expected = 0;
  double variance = 0;
  double clicks = 0;
  for (const Row& row : *rows_) {
    const double p = probability(row);
    expected += p;
    variance += p * (1 - p);
    clicks += row.label;
  }
  EXPECT_NEAR(clicks, expected, 4 * std::sqrt(variance));
  EXPECT_NEAR(clicks / kRows, 0.25, 0.02);
  EXPECT_DOUBLE_EQ((*meta_)["click_rate"].get<double>(), clicks / kRows);
}

TEST_F(Generated, ColumnsHaveTheirNumberOfValuesWithZipfFrequencies) {
  for (size_t k = 0; k < 26; ++k) {
    const auto values = (*meta_)["columns"][k]["values"].get<int>();
    EXPECT_EQ(values,
              static_cast<int>(std::lround(4 * std::pow(250.0, static_cast<double>(k) / 25))));
    std::vector<double> counts(static_cast<size_t>(values), 0.0);
    double present = 0;
    for (const Row& row : *rows_) {
      if (row.values[k] < 0) continue;
      counts[static_cast<size_t>(row.values[k])] += 1;
      present += 1;
    }
    EXPECT_NEAR(present / kRows, 0.98, 0.005);
    double total = 0;
    for (int v = 0; v < values; ++v) total += std::pow(v + 1.0, -1.05);
    for (int v = 0; v < std::min(values, 8); ++v) {
      const double p = std::pow(v + 1.0, -1.05) / total;
      EXPECT_NEAR(counts[static_cast<size_t>(v)] / present, p, 5 * std::sqrt(p / present))
          << k << " " << v;
    }
  }
}

TEST_F(Generated, WeightsAndNumbersHaveTheirDeviations) {
  double squares = 0;
  double weights = 0;
  for (const auto& column : (*meta_)["columns"]) {
    for (const double weight : column["weights"]) squares += weight * weight, weights += 1;
  }
  EXPECT_EQ(weights, 5030);
  EXPECT_NEAR(std::sqrt(squares / weights), 0.3, 4 * 0.3 / std::sqrt(2 * weights));
  for (size_t j = 0; j < 13; ++j) {
    double sum = 0;
    double sum_squares = 0;
    double present = 0;
    for (const Row& row : *rows_) {
      if (row.counts[j] < 0) continue;
      const auto& dense = (*meta_)["dense"][j];
      const double x = (std::log1p(row.counts[j]) - dense["mean"].get<double>()) /
                       dense["deviation"].get<double>();
      sum += x;
      sum_squares += x * x;
      present += 1;
    }
    EXPECT_NEAR(sum / present, 0, 5 / std::sqrt(present));
    EXPECT_NEAR(sum_squares / present, 1, 0.05);
  }
}

TEST_F(Generated, RowsDoNotDependOnHowManyAreWritten) {
  const Finished prefix = run({"generate", "--rows", "100", "--seed", "11", "--output", "-"});
  ASSERT_EQ(prefix.exit_code, 0);
  EXPECT_EQ(prefix.out, read_file(scratch_->path("log.tsv")).substr(0, prefix.out.size()));
  EXPECT_EQ(std::count(prefix.out.begin(), prefix.out.end(), '\n'), 100);
  EXPECT_NE(prefix.err.find("best reachable AUC"), std::string::npos);
  EXPECT_NE(run({"generate", "--rows", "100", "--seed", "12", "--output", "-"}).out, prefix.out);
}

TEST(Generate, SaysWhenItCannotWrite) {
  const Finished result = run({"generate", "--rows", "10", "--output", "/nowhere/log.tsv"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("/nowhere/log.tsv"), std::string::npos);
}

}  // namespace
}  // namespace shardrec::cli::test
