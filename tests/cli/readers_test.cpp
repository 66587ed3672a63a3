// Readers of click logs: every line is a sample or is counted, and ids and numbers become what the
// headers say.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "command.h"
#include "command/user_error.h"
#include "data/click_log.h"
#include "data/criteo_parser.h"
#include "data/hash_number.h"
#include "data/line_reader.h"

namespace shardrec::cli {
namespace {

std::string tsv_line(const std::string& label, const std::string& number, const std::string& id) {
  std::string line = label;
  for (int i = 0; i < kCriteoDense; ++i) line += "\t" + number;
  for (int i = 0; i < kCriteoIds; ++i) line += "\t" + id;
  return line;
}

Samples read_all(ClickLog& log, Split split) {
  Rows rows;
  const auto pass = log.open(split);
  while (pass->read(rows, 7)) {
  }
  Samples samples;
  for (int64_t i = 0; i < rows.size(); ++i) pass->add(rows, i, samples);
  return samples;
}

TEST(LineReader, HandsOutEveryLineAcrossBlocksWithoutItsEnding) {
  const test::Scratch scratch;
  std::string content;
  for (int i = 0; i < 300000; ++i)
    content += std::to_string(i) + (i % 2 == 0 ? "\r\n" : " some text\n");
  content += "last";
  scratch.write("lines", content);
  LineReader reader(scratch.path("lines"));
  std::string_view line;
  for (int i = 0; i < 300000; ++i) {
    ASSERT_TRUE(reader.next(line));
    ASSERT_EQ(line, std::to_string(i) + (i % 2 == 0 ? "" : " some text"));
  }
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "last");
  EXPECT_FALSE(reader.next(line));
  EXPECT_DOUBLE_EQ(reader.fraction(), 1.0);
}

TEST(CriteoParser, NumbersAreLogTransformedWithTheirSignAndIdsHashedByColumn) {
  Schema schema;
  for (int k = 0; k < kCriteoIds; ++k) schema.features.push_back({"C", 1000 + k});
  CriteoParser parser(criteo_layout("log", tsv_line("1", "3", "0a")), schema);
  Sample sample;
  ASSERT_EQ(parser.parse(tsv_line("1", "-2", "68fd1e64"), sample), "");
  EXPECT_EQ(sample.label, 1.0f);
  for (const float value : sample.dense) EXPECT_FLOAT_EQ(value, -std::log(3.0f));
  for (uint64_t k = 0; k < kCriteoIds; ++k) {
    const unsigned char bytes[8] = {0x64, 0x1e, 0xfd, 0x68, 0, 0, 0, 0};
    const uint64_t hash = shardrec_hash64(k, bytes, 8);
    EXPECT_EQ(sample.ids[k], static_cast<int64_t>(1 + hash % (999 + k)));
  }
  ASSERT_EQ(parser.parse(tsv_line("0", "", ""), sample), "");
  for (const float value : sample.dense) EXPECT_EQ(value, 0.0f);
  for (const int64_t id : sample.ids) EXPECT_EQ(id, 0);
}

// The logarithms of counts are kept, those of other numbers are not.
TEST(CriteoParser, LogarithmsAreThoseOfDoublesRoundedOnce) {
  const Schema schema{kCriteoDense, std::vector<Feature>(kCriteoIds, {"C", 10})};
  CriteoParser parser(criteo_layout("log", tsv_line("1", "3", "0a")), schema);
  Sample sample;
  for (const std::string text : {"0", "-0", "1", "2", "7", "1023", "1024", "0.5", "6.999", "-1",
                                 "-1023", "123456789012", "1e300"}) {
    ASSERT_EQ(parser.parse(tsv_line("1", text, "0a"), sample), "");
    const double value = std::stod(text);
    const auto expected = static_cast<float>(std::copysign(std::log1p(std::abs(value)), value));
    EXPECT_EQ(std::bit_cast<uint32_t>(sample.dense[4]), std::bit_cast<uint32_t>(expected)) << text;
  }
}

TEST(CriteoParser, SaysWhatIsWrongWithALine) {
  const Schema schema{kCriteoDense, std::vector<Feature>(kCriteoIds, {"C", 10})};
  CriteoParser parser(criteo_layout("log", tsv_line("1", "3", "0a")), schema);
  Sample sample;
  EXPECT_EQ(parser.parse("1\t2", sample), "has 2 columns, not 40");
  EXPECT_EQ(parser.parse(tsv_line("1", "3", "0a") + "\t", sample), "has 41 columns, not 40");
  EXPECT_EQ(parser.parse(tsv_line("2", "3", "0a"), sample), "label is '2', not 0 or 1");
  EXPECT_EQ(parser.parse(tsv_line("", "3", "0a"), sample), "label is '', not 0 or 1");
  EXPECT_EQ(parser.parse(tsv_line("1", "x", "0a"), sample), "I1 is 'x', not a number");
  EXPECT_EQ(parser.parse(tsv_line("1", "nan", "0a"), sample), "I1 is 'nan', not a number");
  EXPECT_EQ(parser.parse(tsv_line("1", "3", "zz"), sample),
            "C1 is 'zz', not a hex id of up to 64 bits");
}

TEST(CriteoParser, PlainLinesAreMostLinesAndAllOfThemParse) {
  const Schema schema{kCriteoDense, std::vector<Feature>(kCriteoIds, {"C", 10})};
  CriteoParser parser(criteo_layout("log", tsv_line("1", "3", "0a")), schema);
  const std::vector<std::string> plain{tsv_line("1", "3", "0a"), tsv_line("0", "", ""),
                                       tsv_line("0", "-2", "68fd1e64"),
                                       tsv_line("1", "999999999999999", "FfFfFfFfFfFfFfFf")};
  for (const std::string& line : plain) EXPECT_TRUE(parser.is_plain(line)) << line;
  EXPECT_FALSE(parser.is_plain(tsv_line("1", "0.5", "0a")));  // takes parse()

  Sample sample;
  int others = 0;
  for (std::string line : plain) {
    for (size_t at = 0; at <= line.size(); ++at) {
      for (const char c : {'0', '9', '-', '+', 'a', 'g', 'x', '.', ' ', '\t', '\0', '\xff'}) {
        for (const size_t replaced : {0, 1}) {
          std::string changed = line;
          changed.replace(at, replaced, 1, c);
          if (!parser.is_plain(changed)) {
            ++others;
          } else {
            ASSERT_EQ(parser.parse(changed, sample), "") << changed;
          }
        }
      }
      const std::string cut = line.substr(0, at);
      if (parser.is_plain(cut)) {
        ASSERT_EQ(parser.parse(cut, sample), "") << cut;
      }
    }
  }
  EXPECT_GT(others, 1000);
}

TEST(CriteoLog, HeaderNamesTheColumnsInAnyOrder) {
  std::string header = "Id";
  std::string row = "77";
  for (int i = kCriteoIds; i >= 1; --i)
    header += ",C" + std::to_string(i), row += "," + std::to_string(i);
  for (int i = 1; i <= kCriteoDense; ++i)
    header += ",I" + std::to_string(i), row += "," + std::to_string(i);
  const test::Scratch scratch;
  scratch.write("log.csv", header + ",Label\n" + row + ",1\n");
  const auto log = open_criteo({scratch.path("log.csv"), 0, true, 50});
  Samples samples = read_all(*log, Split::kTrain);
  if (samples.size() == 0) samples = read_all(*log, Split::kTest);
  ASSERT_EQ(samples.size(), 1);
  EXPECT_EQ(samples.label(0), 1.0f);
  for (size_t i = 0; i < kCriteoDense; ++i) {
    EXPECT_FLOAT_EQ(samples.dense(0)[i], std::log1p(static_cast<float>(i + 1)));
  }
  for (uint64_t k = 0; k < kCriteoIds; ++k) {
    const std::string text = std::to_string(k + 1);  // read as hex
    const uint64_t value = std::stoull(text, nullptr, 16);
    EXPECT_EQ(samples.ids(0)[k], static_cast<int64_t>(1 + hash_number(k, value) % 49));
  }
}

TEST(CriteoLog, RefusesAFileOfAnotherKind) {
  const test::Scratch scratch;
  scratch.write("log.csv", "a,b,c\n1,2,3\n");
  scratch.write("empty", "");
  EXPECT_THROW((void)open_criteo({scratch.path("log.csv"), 0, false, 0}), UserError);
  EXPECT_THROW((void)open_criteo({scratch.path("empty"), 0, false, 0}), UserError);
  EXPECT_THROW((void)open_criteo({scratch.path("nothing"), 0, false, 0}), UserError);
}

TEST(CriteoLog, SplitIsTheHashOfTheRowNumberAndUnreadableRowsCountOnce) {
  const test::Scratch scratch;
  std::string content;
  for (int i = 0; i < 500; ++i) {
    content += i % 50 == 7 ? "broken\n" : tsv_line("1", std::to_string(i), "ab") + "\n";
  }
  scratch.write("log", content);
  const uint64_t seed = 3;
  const auto log = open_criteo({scratch.path("log"), seed, false, 50});
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Samples train = read_all(*log, Split::kTrain);
    const Samples test = read_all(*log, Split::kTest);
    int64_t at_train = 0;
    int64_t at_test = 0;
    for (uint64_t i = 0; i < 500; ++i) {
      if (i % 50 == 7) continue;
      const unsigned char bytes[8] = {static_cast<unsigned char>(i),
                                      static_cast<unsigned char>(i >> 8)};
      const bool is_test = shardrec_hash64(seed, bytes, 8) % 5 == 0;
      const float value = is_test ? test.dense(at_test++)[0] : train.dense(at_train++)[0];
      ASSERT_FLOAT_EQ(value, std::log1p(static_cast<float>(i)));
    }
    EXPECT_EQ(at_train, train.size());
    EXPECT_EQ(at_test, test.size());
    EXPECT_EQ(log->bad_lines().count(), 10);
  }
  ASSERT_EQ(log->bad_lines().first().size(), BadLines::kShown);
  for (const auto& line : log->bad_lines().first()) EXPECT_EQ(line.number % 50, 8);  // from 1
}

class Movielens : public testing::Test {
 protected:
  void SetUp() override {
    scratch_.write("ml.inter",
                   "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
                   "7\t1\t4\t0\n7\t2\t3\t0\n8\t1\t5\t0\n9\t3\t1\t0\n8\t2\tbad\t0\n8\t2\n");
  }
  // All samples, train and test, by their order in the file: features as text.
  std::vector<std::string> describe(ClickLog& log) {
    std::vector<std::string> lines;
    for (const Split split : {Split::kTrain, Split::kTest}) {
      const Samples samples = read_all(log, split);
      for (int64_t i = 0; i < samples.size(); ++i) {
        std::string line = samples.label(i) > 0 ? "click" : "none";
        size_t at = 0;
        for (const int32_t length : samples.lengths(i)) {
          line += " [";
          for (int32_t k = 0; k < length; ++k) line += " " + std::to_string(samples.ids(i)[at++]);
          line += " ]";
        }
        lines.push_back(line);
      }
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }
  test::Scratch scratch_;
};

TEST_F(Movielens, RatingsOfFourAndFiveAreClicks) {
  const auto log = open_movielens({scratch_.path("ml.inter"), 0, false, 0});
  EXPECT_EQ(log->schema().features.size(), 2u);
  EXPECT_EQ(describe(*log), (std::vector<std::string>{"click [ 1 ] [ 1 ]", "click [ 2 ] [ 1 ]",
                                                      "none [ 1 ] [ 2 ]", "none [ 3 ] [ 3 ]"}));
  EXPECT_EQ(log->bad_lines().count(), 2);
  EXPECT_EQ(log->bad_lines().first()[0].number, 6);
  EXPECT_THROW((void)open_movielens({scratch_.path("ml.inter"), 0, true, 0}), UserError);
}

TEST_F(Movielens, SideFilesAddFeaturesAndAnUnknownUserOrItemHasRowZero) {
  scratch_.write("ml.user",
                 "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token\n"
                 "7\t24\tM\twriter\t85711\n8\t22\tF\twriter\t85799\n");
  scratch_.write("ml.item",
                 "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
                 "1\tToy\t1995\tComedy Animation\n2\tBond\t1996\tAction\n");
  const auto log = open_movielens({scratch_.path("ml.inter"), 0, false, 0});
  std::vector<std::string> names;
  for (const Feature& feature : log->schema().features) names.push_back(feature.name);
  EXPECT_EQ(names, (std::vector<std::string>{"user", "item", "gender", "occupation", "zip3", "age5",
                                             "year3", "genres"}));
  // Both users: age 20-24, zip 857; both items: years 1995-1997.
  EXPECT_EQ(describe(*log),
            (std::vector<std::string>{"click [ 1 ] [ 1 ] [ 1 ] [ 1 ] [ 1 ] [ 1 ] [ 1 ] [ 1 2 ]",
                                      "click [ 2 ] [ 1 ] [ 2 ] [ 1 ] [ 1 ] [ 1 ] [ 1 ] [ 1 2 ]",
                                      "none [ 1 ] [ 2 ] [ 1 ] [ 1 ] [ 1 ] [ 1 ] [ 1 ] [ 3 ]",
                                      "none [ 3 ] [ 3 ] [ 0 ] [ 0 ] [ 0 ] [ 0 ] [ 0 ] [ ]"}));
}

}  // namespace
}  // namespace shardrec::cli
