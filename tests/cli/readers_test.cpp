// Readers of click logs: every line is a sample or is counted, and ids and numbers become what the
// headers say.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "command.h"
#include "command/user_error.h"
#include "data/click_log.h"
#include "data/criteo_parser.h"
#include "data/data_files.h"
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
  std::unique_ptr<Pass> pass;
  ParseThreads threads(3);
  pass = log.open(split, threads);
  while (pass->read(rows, 7)) {
  }
  Samples samples;
  Sample scratch;
  for (int64_t i = 0; i < rows.size(); ++i) pass->add(rows, i, scratch, samples);
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
  EXPECT_EQ(parser.parse(tsv_line("2", "3", "0a"), sample),
            "label is '2', not 0 or 1 (labels look like numbers: make them 1 and 0 first)");
  EXPECT_EQ(parser.parse(tsv_line("", "3", "0a"), sample),
            "label is '', not 0 or 1 (labels are missing)");
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
  const auto log = open_criteo(
      {.paths = {scratch.path("log.csv")}, .tolerance = {.strict = true}, .rows_per_table = 50});
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
  EXPECT_THROW((void)open_criteo({.paths = {scratch.path("log.csv")}}), UserError);
  EXPECT_THROW((void)open_criteo({.paths = {scratch.path("empty")}}), UserError);
  EXPECT_THROW((void)open_criteo({.paths = {scratch.path("nothing")}}), UserError);
}

TEST(CriteoLog, SplitIsTheHashOfTheRowNumberAndUnreadableRowsCountOnce) {
  const test::Scratch scratch;
  std::string content;
  for (int i = 0; i < 500; ++i) {
    content += i % 50 == 7 ? "broken\n" : tsv_line("1", std::to_string(i), "ab") + "\n";
  }
  scratch.write("log", content);
  const uint64_t seed = 3;
  const auto log = open_criteo({.paths = {scratch.path("log")},
                                .seed = seed,
                                .tolerance = {.share = 0.05},
                                .rows_per_table = 50});
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

std::string with_label(const std::string& label, int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += tsv_line(i % 3 == 0 ? "1" : label, std::to_string(i), "ab") + "\n";
  return text;
}

std::string refusal_of(const ClickLogOptions& options) {
  const auto log = open_criteo(options);
  try {
    read_all(*log, Split::kTrain);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

TEST(CriteoLog, MoreUnreadableLinesThanAreAllowedEndIt) {
  const test::Scratch scratch;
  std::string content;
  for (int i = 0; i < 1000; ++i) {
    content += i % 50 == 7 ? "broken\n" : tsv_line("1", std::to_string(i), "ab") + "\n";
  }
  scratch.write("log", content);
  const std::string refusal = refusal_of({.paths = {scratch.path("log")}});
  EXPECT_NE(refusal.find("lines are unreadable, more than 1.00 % (--max-unreadable)"),
            std::string::npos)
      << refusal;
  EXPECT_NE(refusal.find(", line 58: has 1 columns, not 40"), std::string::npos) << refusal;
  EXPECT_EQ(std::count(refusal.begin(), refusal.end(), '\n'), 3) << refusal;
  EXPECT_EQ(refusal_of({.paths = {scratch.path("log")}, .tolerance = {.share = 0.04}}), "");
  // Nothing at all is never enough.
  scratch.write("log", tsv_line("5", "3", "ab") + "\n" + tsv_line("4", "3", "ab") + "\n");
  EXPECT_NE(refusal_of({.paths = {scratch.path("log")}, .tolerance = {.share = 1}}), "");
  scratch.write("log.csv", "label,i1\n");
  EXPECT_THROW((void)refusal_of({.paths = {scratch.path("log.csv")}}), UserError);
}

// The share is of all rows so far, not of the lines of the file that is read.
TEST(CriteoLog, ASecondFileIsNotJudgedByItsFirstLines) {
  const test::Scratch scratch;
  std::string half;
  const std::string bad = "0\tbroken\n";
  const std::string good = tsv_line("1", "3", "ab") + "\n";
  for (int i = 0; i < 32000; ++i) half += i % 2 == 0 ? bad : good;
  scratch.write("day_0", half);
  scratch.write("day_1", bad + bad + good);
  const std::vector<std::string> days{scratch.path("day_0"), scratch.path("day_1")};
  EXPECT_EQ(refusal_of({.paths = days, .tolerance = {.share = 0.6}}), "");
  const std::string early = refusal_of({.paths = days, .tolerance = {.share = 0.4}});
  EXPECT_NE(early.find("day_0: 10,000 of "), std::string::npos) << early;
}

TEST(CriteoLog, LabelsOfAnotherKindAreNamed) {
  const test::Scratch scratch;
  scratch.write("signed", with_label("-1", 90));
  scratch.write("binary", with_label("0", 90));
  scratch.write("decimal", with_label("0.0", 90));
  scratch.write("ratings", with_label("4", 90));
  scratch.write("words", with_label("no", 90));
  const auto refusal = [&](const char* file, Labels labels) {
    return refusal_of({.paths = {scratch.path(file)}, .labels = labels});
  };
  const auto expect = [&](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(refusal("signed", Labels::kBinary), "labels look like -1/1: --labels signed");
  expect(refusal("binary", Labels::kSigned), "labels look like 0/1: --labels binary");
  expect(refusal("ratings", Labels::kBinary), "label is '4', not 0 or 1 (labels look like numbers");
  expect(refusal("words", Labels::kSigned), "label is 'no', not -1 or 1 (labels look like text");
  EXPECT_EQ(refusal("signed", Labels::kSigned), "");
  EXPECT_EQ(refusal("decimal", Labels::kBinary), "");
  const auto signed_log = open_criteo(
      {.paths = {scratch.path("signed")}, .labels = Labels::kSigned, .rows_per_table = 50});
  const auto binary_log = open_criteo({.paths = {scratch.path("binary")}, .rows_per_table = 50});
  const Samples one = read_all(*signed_log, Split::kTrain);
  const Samples other = read_all(*binary_log, Split::kTrain);
  ASSERT_EQ(one.size(), other.size());
  for (int64_t i = 0; i < one.size(); ++i) ASSERT_EQ(one.label(i), other.label(i));
}

TEST(CriteoLog, AByteOrderMarkIsNoPartOfTheHeader) {
  const test::Scratch scratch;
  std::string text = "c1,label";  // not the default order
  std::string row = "ab,1";
  for (int i = 2; i <= kCriteoIds; ++i) text += ",c" + std::to_string(i), row += ",1";
  for (int i = 1; i <= kCriteoDense; ++i) text += ",i" + std::to_string(i), row += ",2";
  text += "\n" + row + "\n" + row + "\n" + row + "\n";
  scratch.write("plain.csv", text);
  scratch.write("marked.csv", "\xEF\xBB\xBF" + text);
  std::string tabs = text;
  std::replace(tabs.begin(), tabs.end(), ',', '\t');
  scratch.write("marked.tsv", "\xEF\xBB\xBF" + tabs);
  const auto plain = read_all(*open_criteo({.paths = {scratch.path("plain.csv")}}), Split::kTrain);
  ASSERT_GT(plain.size(), 0);
  for (const char* file : {"marked.csv", "marked.tsv"}) {
    const auto marked = read_all(*open_criteo({.paths = {scratch.path(file)}}), Split::kTrain);
    ASSERT_EQ(marked.size(), plain.size()) << file;
    EXPECT_TRUE(std::ranges::equal(marked.ids(0), plain.ids(0))) << file;
    EXPECT_EQ(marked.label(0), 1) << file;
  }
  scratch.write("wide.csv", std::string("\xFF\xFEl\0a\0", 6));
  EXPECT_THROW((void)open_criteo({.paths = {scratch.path("wide.csv")}}), UserError);
}

// The same rows in one file and in three, with headers in any order.
TEST(CriteoLog, FilesAreReadOneAfterAnother) {
  const test::Scratch scratch;
  std::string header = "label";
  std::string turned = "c26";
  for (int i = 1; i <= kCriteoDense; ++i) header += "\ti" + std::to_string(i);
  for (int i = 1; i <= kCriteoIds; ++i) header += "\tc" + std::to_string(i);
  for (int i = kCriteoIds - 1; i >= 1; --i) turned += "\tc" + std::to_string(i);
  for (int i = kCriteoDense; i >= 1; --i) turned += "\ti" + std::to_string(i);
  turned += "\tlabel";
  std::string parts[3];
  std::string all;
  for (int i = 0; i < 300; ++i) {
    const std::string number = std::to_string(i);
    all += tsv_line(i % 2 == 0 ? "1" : "0", number, "ab") + "\n";
    if (i < 100) parts[0] += tsv_line(i % 2 == 0 ? "1" : "0", number, "ab") + "\n";
    if (i >= 100 && i < 120) parts[1] += tsv_line(i % 2 == 0 ? "1" : "0", number, "ab") + "\n";
    if (i < 120) continue;
    std::string line = "ab";
    for (int k = 1; k < kCriteoIds; ++k) line += "\tab";
    for (int k = 0; k < kCriteoDense; ++k) line += "\t" + number;
    parts[2] += line + (i % 2 == 0 ? "\t1" : "\t0") + "\n";
  }
  scratch.write("all", all);
  scratch.write("day_2", parts[0]);
  scratch.write("day_10", header + "\n" + parts[1]);
  scratch.write("day_011", turned + "\n" + parts[2]);
  const auto one = open_criteo({.paths = {scratch.path("all")}, .rows_per_table = 50});
  const auto three =
      open_criteo({.paths = data_files({scratch.path("day_*")}), .rows_per_table = 50});
  for (const Split split : {Split::kTrain, Split::kTest, Split::kTrain}) {
    const Samples expected = read_all(*one, split);
    const Samples found = read_all(*three, split);
    ASSERT_EQ(found.size(), expected.size());
    for (int64_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found.row(i), expected.row(i));
      ASSERT_EQ(found.label(i), expected.label(i));
      ASSERT_TRUE(std::ranges::equal(found.dense(i), expected.dense(i)));
      ASSERT_TRUE(std::ranges::equal(found.ids(i), expected.ids(i)));
    }
  }
  double before = -1;
  std::unique_ptr<Pass> pass;
  ParseThreads alone(1);
  pass = three->open(Split::kTest, alone);
  for (Rows rows; pass->read(rows, 5);) {
    EXPECT_GE(pass->fraction(), before);
    before = pass->fraction();
  }
  EXPECT_DOUBLE_EQ(pass->fraction(), 1);
}

TEST(CriteoLog, WithoutLabelsEveryRowIsATestRow) {
  const test::Scratch scratch;
  std::string lines;
  std::string labelled;
  for (int i = 0; i < 50; ++i) {
    const std::string line = tsv_line("1", std::to_string(i), "ab");
    labelled += line + "\n";
    lines += line.substr(2) + "\n";
  }
  scratch.write("test.tsv", lines);
  scratch.write("train.tsv", labelled);
  const auto log = open_criteo({.paths = {scratch.path("test.tsv")}});
  EXPECT_FALSE(log->labelled());
  EXPECT_EQ(read_all(*log, Split::kTest).size(), 50);
  EXPECT_EQ(log->bad_lines().count(), 0);
  EXPECT_TRUE(open_criteo({.paths = {scratch.path("train.tsv")}})->labelled());
  EXPECT_THROW((void)open_criteo({.paths = {scratch.path("test.tsv"), scratch.path("train.tsv")}}),
               UserError);
}

TEST(DataFiles, AreInTheOrderOfTheirNumbers) {
  const test::Scratch scratch;
  for (const char* name : {"day_10", "day_9", "day_1", "day_1.meta.json", ".hidden", "_SUCCESS"}) {
    scratch.write(name, "x");
  }
  const auto paths = [&](std::vector<std::string> names) {
    for (std::string& name : names) name = scratch.path(name);
    return names;
  };
  std::string folder = scratch.path("day_1");
  folder = folder.substr(0, folder.rfind('/'));
  EXPECT_EQ(data_files({folder}), paths({"day_1", "day_9", "day_10"}));
  EXPECT_EQ(data_files({scratch.path("day_?")}), paths({"day_1", "day_9"}));
  EXPECT_EQ(data_files({scratch.path("day_9"), scratch.path("day_[1]*0")}),
            paths({"day_9", "day_10"}));
  EXPECT_EQ(data_files({scratch.path("nothing")}), paths({"nothing"}));  // said when it is opened
  EXPECT_THROW((void)data_files({scratch.path("week_*")}), UserError);
  std::filesystem::create_directory(scratch.path("empty"));
  EXPECT_THROW((void)data_files({scratch.path("empty")}), UserError);
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
  const ClickLogOptions half{.paths = {scratch_.path("ml.inter")}, .tolerance = {.share = 0.5}};
  const auto log = open_movielens(half);
  EXPECT_EQ(log->schema().features.size(), 2u);
  EXPECT_EQ(describe(*log), (std::vector<std::string>{"click [ 1 ] [ 1 ]", "click [ 2 ] [ 1 ]",
                                                      "none [ 1 ] [ 2 ]", "none [ 3 ] [ 3 ]"}));
  EXPECT_EQ(log->bad_lines().count(), 2);
  EXPECT_EQ(log->bad_lines().first()[0].number, 6);
  EXPECT_THROW((void)open_movielens({.paths = half.paths, .tolerance = {.strict = true}}),
               UserError);
  EXPECT_THROW((void)open_movielens({.paths = half.paths}), UserError);  // a third is unreadable
}

TEST_F(Movielens, SideFilesAddFeaturesAndAnUnknownUserOrItemHasRowZero) {
  scratch_.write("ml.user",
                 "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token\n"
                 "7\t24\tM\twriter\t85711\n8\t22\tF\twriter\t85799\n");
  scratch_.write("ml.item",
                 "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
                 "1\tToy\t1995\tComedy Animation\n2\tBond\t1996\tAction\n");
  const auto log =
      open_movielens({.paths = {scratch_.path("ml.inter")}, .tolerance = {.share = 0.5}});
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

// The same ratings, users and items as each of the four formats has them.
TEST_F(Movielens, FormatsOfItsPublisherAreRead) {
  scratch_.write("ml.inter",
                 "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
                 "7\t1\t4\t0\n7\t2\t3.5\t0\n8\t1\t5\t0\n9\t2\t1\t0\n");
  scratch_.write("ml.user",
                 "user_id:token\tage:token\tgender:token\toccupation:token\tzip_code:token\n"
                 "7\t24\tM\twriter\t85711\n8\t22\tF\twriter\t85799\n");
  scratch_.write("ml.item",
                 "item_id:token\tmovie_title:token_seq\trelease_year:token\tclass:token_seq\n"
                 "1\tToy, Story\t1995\tAnimation Comedy\n2\tBond\t1996\tAction\n");
  scratch_.write("u.data", "7\t1\t4\t0\n7\t2\t3.5\t0\n8\t1\t5\t0\n9\t2\t1\t0\n");
  scratch_.write("u.user", "7|24|M|writer|85711\n8|22|F|writer|85799\n");
  scratch_.write("u.item",
                 "1|Toy, Story (1995)|01-Jan-1995||http://a|0|0|0|1|0|1|0|0|0|0|0|0|0|0|0|0|0|0|0\n"
                 "2|Bond (1996)|01-Jan-1996||http://b|0|1|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0|0\n");
  scratch_.write("ratings.dat", "7::1::4::0\n7::2::3.5::0\n8::1::5::0\n9::2::1::0\n");
  scratch_.write("users.dat", "7::M::24::writer::85711\n8::F::22::writer::85799\n");
  scratch_.write("movies.dat", "1::Toy, Story (1995)::Animation|Comedy\n2::Bond (1996)::Action\n");
  scratch_.write("ratings.csv",
                 "userId,movieId,rating,timestamp\n7,1,4,0\n7,2,3.5,0\n8,1,5.0,0\n9,2,1,0\n");
  scratch_.write("movies.csv",
                 "movieId,title,genres\n1,\"Toy, Story (1995)\",Animation|Comedy\n"
                 "2,Bond (1996),Action\n");
  const auto read = [&](const char* file) {
    const auto log =
        open_movielens({.paths = {scratch_.path(file)}, .tolerance = {.strict = true}});
    return std::pair(log->schema().features.size(), describe(*log));
  };
  const auto expected = read("ml.inter");
  EXPECT_EQ(expected.first, 8u);
  EXPECT_EQ(expected.second.size(), 4u);
  EXPECT_EQ(read("u.data"), expected);
  EXPECT_EQ(read("ratings.dat"), expected);
  const auto [features, samples] = read("ratings.csv");  // which has no users
  EXPECT_EQ(features, 4u);
  EXPECT_EQ(samples, (std::vector<std::string>{
                         "click [ 1 ] [ 1 ] [ 1 ] [ 1 2 ]", "click [ 2 ] [ 1 ] [ 1 ] [ 1 2 ]",
                         "none [ 1 ] [ 2 ] [ 1 ] [ 3 ]", "none [ 3 ] [ 2 ] [ 1 ] [ 3 ]"}));
  scratch_.write("u.item", "1|Toy\n");
  EXPECT_THROW((void)open_movielens({.paths = {scratch_.path("u.data")}}), UserError);
}

}  // namespace
}  // namespace shardrec::cli
