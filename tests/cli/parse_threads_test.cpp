// Parsing on several threads: what ranks get is what one thread that reads line after line makes of the files,
// and what fails does so behind the same batch, in the same words.
#include "data/parse_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "command.h"
#include "command/numbers.h"
#include "command/user_error.h"
#include "data/criteo_lines.h"
#include "data/line_sink.h"
#include "train/batch_feed.h"
#include "train/feeds.h"
#include "train/parse_share.h"

namespace shardrec::cli {
namespace {

constexpr int kThreadCounts[] = {1, 2, 3, 8};

// Text of a log, as it will be read, with a line as a file has it.
struct MadeLog {
  std::vector<std::string> texts;  // of each file
  std::vector<std::string> names;
};

// Columns in Criteo's order, with other numbers and ids in each row.
std::string made_columns(int64_t row, char separator) {
  std::string line = row % 3 == 0 ? "1" : "0";
  for (int64_t i = 0; i < kCriteoDense; ++i) {
    line += separator;
    if ((row + i) % 11 != 0) line += std::to_string((row * 7 + i * 131) % 5000 - 3);
  }
  constexpr const char* kDigits = "0123456789abcdef";
  for (int64_t i = 0; i < kCriteoIds; ++i) {
    line += separator;
    if ((row + i) % 17 == 0) continue;
    for (int64_t k = 0; k < 8; ++k) line += kDigits[(row * (k + 3) + i * 5 + k) % 16];
  }
  return line;
}

std::string made_header(char separator) {
  std::string line = "label";
  for (int i = 1; i <= kCriteoDense; ++i) line += separator + ("i" + std::to_string(i));
  for (int i = 1; i <= kCriteoIds; ++i) line += separator + ("c" + std::to_string(i));
  return line;
}

// Three files: tabs; commas with a header and a column of text, some of it so long that two such lines exceed
// CriteoLines::kBytes; tabs in gzip format. `broken`: rows that are no click.
MadeLog made_log(int64_t rows, const std::function<bool(int64_t)>& broken) {
  MadeLog log{.texts = std::vector<std::string>(3), .names = {"a.tsv", "b.csv", "c.gz"}};
  log.texts[1] = made_header(',') + ",text\r\n";
  for (int64_t row = 0; row < rows; ++row) {
    const auto file = static_cast<size_t>(row * 3 / rows);
    std::string& text = log.texts[file];
    const int64_t long_text = row % 200 == 7 ? 900'000 : row % 5;
    if (broken(row)) {
      text += "broken " + std::to_string(row);
    } else {
      text += made_columns(row, file == 1 ? ',' : '\t');
      if (file == 1) text += ',' + std::string(static_cast<size_t>(long_text), 'x');
    }
    text += file == 1 ? "\r\n" : "\n";
  }
  return log;
}

std::vector<std::string> write_log(const test::Scratch& scratch, const MadeLog& log) {
  std::vector<std::string> paths;
  for (size_t f = 0; f < log.texts.size(); ++f) {
    paths.push_back(scratch.path(log.names[f]));
    if (log.names[f].ends_with(".gz")) {
      LineSink sink(paths.back());
      sink.write(log.texts[f]);
      sink.finish();
    } else {
      scratch.write(log.names[f], log.texts[f]);
    }
  }
  return paths;
}

// What one line after another gives, without blocks, threads or files: samples of both splits in the order of the
// data, and lines that are unreadable.
struct Expected {
  Samples of_split[2];
  std::vector<std::string> unreadable[2];  // "PATH, line N: reason"
};

Expected expected_of(const MadeLog& log, const std::vector<std::string>& paths,
                     const Schema& schema, uint64_t seed) {
  Expected expected;
  int64_t row = 0;
  for (size_t f = 0; f < log.texts.size(); ++f) {
    std::istringstream lines(log.texts[f]);
    std::string line;
    std::unique_ptr<CriteoParser> parser;
    for (int64_t number = 1; std::getline(lines, line); ++number) {
      if (line.ends_with('\r')) line.pop_back();
      if (parser == nullptr) {
        const CriteoLayout layout = criteo_layout(paths[f], line);
        parser = std::make_unique<CriteoParser>(layout, schema);
        if (layout.header) continue;
      }
      const size_t split = is_test_row(seed, static_cast<uint64_t>(row)) ? 1 : 0;
      Sample sample;
      const std::string problem = parser->parse(line, sample);
      sample.row = row++;
      if (problem.empty()) {
        expected.of_split[split].add(sample);
      } else {
        expected.unreadable[split].push_back(paths[f] + ", line " + std::to_string(number) + ": " +
                                             problem);
      }
    }
  }
  return expected;
}

void expect_equal(const Samples& found, int64_t at, const Samples& expected, int64_t index) {
  ASSERT_EQ(found.row(at), expected.row(index));
  ASSERT_EQ(found.label(at), expected.label(index));
  ASSERT_TRUE(std::ranges::equal(found.dense(at), expected.dense(index)));
  ASSERT_TRUE(std::ranges::equal(found.lengths(at), expected.lengths(index)));
  ASSERT_TRUE(std::ranges::equal(found.ids(at), expected.ids(index)));
}

struct Received {
  Samples samples;             // of all batches
  std::vector<int64_t> sizes;  // of the batches
  std::string error;           // behind them
};

Received receive(ClickLog& log, const FeedOptions& options) {
  Received received;
  BatchFeed feed(log, options);
  BatchFeed::Reader reader(feed, 0);
  try {
    while (const auto batch = reader.next()) {
      received.sizes.push_back(batch->size);
      for (int64_t i = 0; i < batch->samples.size(); ++i) received.samples.add(batch->samples, i);
    }
  } catch (const std::exception& error) {
    received.error = error.what();
  }
  return received;
}

constexpr int64_t kRowsOfLog = SHARDREC_SANITIZED ? 3000 : 9000;

TEST(ParsedOnThreads, TestBatchesAreTheRowsInTheOrderOfTheFiles) {
  const test::Scratch scratch;
  const MadeLog made = made_log(kRowsOfLog, [](int64_t row) { return row % 150 == 3; });
  const std::vector<std::string> paths = write_log(scratch, made);
  const ClickLogOptions options{.paths = paths, .seed = 3, .rows_per_table = 50};
  const Expected expected = expected_of(made, paths, open_criteo(options)->schema(), options.seed);
  const Samples& samples = expected.of_split[1];
  for (const int threads : kThreadCounts) {
    const auto log = open_criteo(options);
    const Received received =
        receive(*log, {.split = Split::kTest, .seed = 3, .batch = 100, .threads = threads});
    EXPECT_EQ(received.error, "");
    ASSERT_EQ(received.samples.size(), samples.size());
    for (int64_t i = 0; i < samples.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(expect_equal(received.samples, i, samples, i));
    }
    EXPECT_EQ(received.sizes.front(), 100);
    EXPECT_EQ(received.sizes.back(), samples.size() % 100);
    EXPECT_EQ(log->bad_lines().count(), std::ssize(expected.unreadable[1]));
    std::vector<std::string> first;
    for (const BadLines::Line& line : log->bad_lines().first()) {
      first.push_back(line.path + ", line " + std::to_string(line.number) + ": " + line.reason);
    }
    EXPECT_TRUE(std::ranges::equal(first, std::span(expected.unreadable[1]).first(first.size())));
  }
}

TEST(ParsedOnThreads, TrainingBatchesAreTheSameForAnyNumberOfThreads) {
  const test::Scratch scratch;
  const MadeLog made = made_log(kRowsOfLog, [](int64_t row) { return row % 150 == 3; });
  const std::vector<std::string> paths = write_log(scratch, made);
  const ClickLogOptions options{.paths = paths, .seed = 3, .rows_per_table = 50};
  const Expected expected = expected_of(made, paths, open_criteo(options)->schema(), options.seed);
  const Samples& samples = expected.of_split[0];
  for (const int64_t batch : {1, 97, 100000}) {
    std::vector<int64_t> order;  // of one thread
    for (const int threads : kThreadCounts) {
      for (const int64_t skip : {0, 5}) {
        const auto log = open_criteo(options);
        const Received received = receive(
            *log, {.seed = 3, .epoch = 1, .batch = batch, .skip = skip, .threads = threads});
        std::vector<int64_t> rows;
        for (int64_t i = 0; i < received.samples.size(); ++i) {
          rows.push_back(received.samples.row(i));
        }
        if (order.empty()) order = rows;
        // A run that goes on gets what is behind the batches it had.
        const auto had = std::min(order.size(), static_cast<size_t>(skip * batch));
        ASSERT_TRUE(std::ranges::equal(rows, std::span(order).subspan(had)))
            << threads << " threads, batches of " << batch << ", " << skip << " skipped";
        if (skip > 0) continue;
        ASSERT_EQ(received.samples.size(), samples.size());
        std::vector<int64_t> at(static_cast<size_t>(kRowsOfLog), -1);
        for (size_t i = 0; i < rows.size(); ++i) {
          at[static_cast<size_t>(rows[i])] = static_cast<int64_t>(i);
        }
        for (int64_t i = 0; i < samples.size(); ++i) {
          const int64_t found = at[static_cast<size_t>(samples.row(i))];
          ASSERT_GE(found, 0) << "row " << samples.row(i);
          ASSERT_NO_FATAL_FAILURE(expect_equal(received.samples, found, samples, i));
        }
      }
    }
  }
}

TEST(ParsedOnThreads, TheFirstErrorOfTheFilesComesBehindTheSameBatches) {
  const test::Scratch scratch;
  const MadeLog made = made_log(kRowsOfLog, [](int64_t row) {
    return row == kRowsOfLog / 5 || (row > kRowsOfLog / 5 && row % 2 == 1);
  });
  const std::vector<std::string> paths = write_log(scratch, made);
  ClickLogOptions options{.paths = paths, .seed = 3, .rows_per_table = 50};
  const Expected expected = expected_of(made, paths, open_criteo(options)->schema(), options.seed);
  const std::string first =
      expected.unreadable[1].front() + " (--strict stops at the first unreadable line).";
  // The row before: batches that end at it or before have no part in the error.
  const std::string number = first.substr(first.find("line ") + 5);
  int64_t before = 0;
  for (int64_t i = 0; i < expected.of_split[1].size(); ++i) {
    before += expected.of_split[1].row(i) < std::stoll(number) ? 1 : 0;
  }
  std::string too_many;
  for (const int threads : kThreadCounts) {
    const FeedOptions feed{.split = Split::kTest, .seed = 3, .batch = 10, .threads = threads};
    options.tolerance = {.strict = true};
    const Received strict = receive(*open_criteo(options), feed);
    EXPECT_EQ(strict.error, first) << threads;
    EXPECT_EQ(strict.samples.size(), before / 10 * 10) << threads;

    options.tolerance = {.share = 0.01};
    const Received tolerant = receive(*open_criteo(options), feed);
    if (too_many.empty()) too_many = tolerant.error;
    EXPECT_NE(tolerant.error.find("lines are unreadable, more than 1.00 %"), std::string::npos);
    EXPECT_NE(tolerant.error.find(expected.unreadable[1][2]), std::string::npos) << tolerant.error;
    EXPECT_EQ(tolerant.error, too_many) << threads;
  }
}

TEST(ParsedOnThreads, AFileThatEndsInTheMiddleOrIsGoneIsNamedBehindTheRowsBefore) {
  const test::Scratch scratch;
  const MadeLog made = made_log(kRowsOfLog, [](int64_t) { return false; });
  const std::vector<std::string> paths = write_log(scratch, made);
  const std::string whole = test::read_file(paths[2]);
  const ClickLogOptions options{.paths = paths, .seed = 3, .rows_per_table = 50};
  const Expected expected = expected_of(made, paths, open_criteo(options)->schema(), options.seed);
  int64_t before_last = 0;  // test rows of the first two files
  for (int64_t i = 0; i < expected.of_split[1].size(); ++i) {
    before_last += expected.of_split[1].row(i) < kRowsOfLog / 3 * 2 ? 1 : 0;
  }
  int64_t before_the_cut = -1;
  for (const int threads : kThreadCounts) {
    const FeedOptions feed{.split = Split::kTest, .seed = 3, .batch = 10, .threads = threads};
    scratch.write("c.gz", whole.substr(0, whole.size() / 2));
    const Received cut = receive(*open_criteo(options), feed);
    EXPECT_EQ(cut.error, paths[2] + ", byte " +
                             with_separators(static_cast<int64_t>(whole.size() / 2)) +
                             ": the file ends in the middle of its gzip data; it was cut short.");
    if (before_the_cut < 0) before_the_cut = cut.samples.size();
    EXPECT_EQ(cut.samples.size(), before_the_cut);
    EXPECT_GT(before_the_cut, before_last);

    const auto log = open_criteo(options);
    std::filesystem::remove(paths[2]);
    const Received gone = receive(*log, feed);
    EXPECT_EQ(gone.error, "Cannot read " + paths[2] + ": No such file or directory.");
    EXPECT_EQ(gone.samples.size(), before_last / 10 * 10);
  }
}

TEST(ParsedOnThreads, TheFractionNeverFallsNotEvenBeforeAnError) {
  const test::Scratch scratch;
  const MadeLog made = made_log(kRowsOfLog, [](int64_t) { return false; });
  const std::vector<std::string> paths = write_log(scratch, made);
  const std::string whole = test::read_file(paths[2]);
  scratch.write("c.gz", whole.substr(0, whole.size() / 2));
  const auto log = open_criteo({.paths = paths, .seed = 3, .rows_per_table = 50});
  for (const int count : kThreadCounts) {
    std::unique_ptr<Pass> pass;
    ParseThreads threads(count);
    pass = log->open(Split::kTrain, threads);
    Rows rows;
    double before = 0;
    const auto read_on = [&] {
      while (pass->read(rows, 1)) {
        ASSERT_GE(pass->fraction(), before) << count << " threads, row " << rows.lines.back().row;
        before = pass->fraction();
      }
    };
    EXPECT_THROW(read_on(), UserError);
    EXPECT_GE(pass->fraction(), before);
    EXPECT_GT(before, 0.5);
  }
}

TEST(ParsedOnThreads, SlicesArePackedAsRanksPackThem) {
  const test::Scratch scratch;
  const MadeLog made = made_log(900, [](int64_t) { return false; });
  const ClickLogOptions options{.paths = write_log(scratch, made), .rows_per_table = 50};
  const auto log = open_criteo(options);
  const auto expect_packed = [&](const GlobalBatch& batch, const Samples& samples, Slice of,
                                 int rank, const PackedBatch& found) {
    const Slice slice = slice_of(batch.size, 3, rank, 8);
    PackedBatch expected;
    pack(log->schema(), samples, slice.first - of.first, slice.last - of.first, expected);
    EXPECT_EQ(found.size, slice.size());
    EXPECT_EQ(found.labels, expected.labels);
    EXPECT_EQ(found.dense, expected.dense);
    EXPECT_EQ(found.lengths, expected.lengths);
    EXPECT_EQ(found.ids, expected.ids);
  };
  FeedOptions feed{.batch = 100, .readers = 3, .ranks = 3, .unit = 8, .threads = 3};
  std::vector<std::shared_ptr<const GlobalBatch>> whole;
  {
    BatchFeed shared(*log, feed);
    BatchFeed::Reader reader(shared, 0);
    const BatchFeed::Reader second(shared, 1);
    BatchFeed::Reader third(shared, 2);
    while (whole.size() < 5) {
      whole.push_back(reader.next());
      ASSERT_EQ(third.next(), whole.back());
      for (int rank = 0; rank < 3; ++rank) {
        expect_packed(*whole.back(), whole.back()->samples, whole.back()->slice, rank,
                      whole.back()->packed.at(static_cast<size_t>(rank)));
      }
    }
  }
  feed.readers = 1;
  feed.keeps_samples = false;
  for (feed.rank = 0; feed.rank < 3; ++feed.rank) {
    BatchFeed own(*log, feed);
    BatchFeed::Reader reader(own, 0);
    for (const auto& expected : whole) {
      const auto batch = reader.next();
      EXPECT_EQ(batch->samples.size(), 0);
      ASSERT_EQ(batch->packed.size(), 1U);
      expect_packed(*batch, expected->samples, expected->slice, feed.rank, batch->packed[0]);
    }
  }
}

TEST(ParsedOnThreads, SamplesAreKeptWhereTheirPredictionsAreWritten) {
  const test::Scratch scratch;
  const MadeLog made = made_log(900, [](int64_t) { return false; });
  const auto log = open_criteo({.paths = write_log(scratch, made), .rows_per_table = 50});
  TrainOptions options;
  options.ranks = 2;
  options.ranks_per_node = 2;
  options.batch = 64;
  options.parse_threads = 3;
  const auto kept = [&](int rank) {
    Feeds feeds(*log, options);
    BatchFeed::Reader reader(feeds.test(rank), 0);
    const auto batch = reader.next();
    EXPECT_GT(batch->size, 0);
    EXPECT_FALSE(batch->packed.empty());
    return batch->samples.size() > 0;
  };
  for (const char* engine : {"local", "gloo"}) {
    options.engine = engine;
    options.output = "";
    EXPECT_FALSE(kept(0)) << engine;
    options.output = "predictions";
    EXPECT_TRUE(kept(0)) << engine;
    // Threads share the feed, in which rank 0 finds the samples of all.
    EXPECT_EQ(kept(1), options.engine == "local") << engine;
  }
}

TEST(ParsedOnThreads, AFeedThatNobodyReadsOnEnds) {
  const test::Scratch scratch;
  const MadeLog made = made_log(kRowsOfLog, [](int64_t) { return false; });
  const ClickLogOptions options{.paths = write_log(scratch, made), .rows_per_table = 50};
  for (int taken = 0; taken < 4; ++taken) {
    const auto log = open_criteo(options);
    BatchFeed feed(*log, {.batch = 10, .readers = 2, .threads = 4});
    BatchFeed::Reader reader(feed, 0);
    for (int i = 0; i < taken; ++i) ASSERT_NE(reader.next(), nullptr);
  }
}

TEST(ParseThreads, DoEachJobOnceInAnyNumber) {
  class Job final : public ParseJob {
   public:
    void run() noexcept override { ++runs; }
    std::atomic<int> runs{0};
  };
  for (const int count : {1, 2, 5}) {
    std::vector<std::shared_ptr<Job>> jobs;
    {
      ParseThreads threads(count);
      EXPECT_EQ(threads.count(), count);
      for (int i = 0; i < 200; ++i) {
        jobs.push_back(std::make_shared<Job>());
        threads.begin(jobs.back(), i % 3 == 0 ? ParseStage::kLines : ParseStage::kBatch);
      }
      for (size_t i = 0; i < jobs.size(); i += 3) {
        threads.finish(*jobs[i], ParseStage::kLines);
        EXPECT_EQ(jobs[i]->runs, 1);
      }
    }
    for (const auto& job : jobs) EXPECT_EQ(job->runs, 1);
  }
}

// The calling thread waits in one of the jobs: a worker has to do the other.
TEST(ParseThreads, AWorkerDoesAJobWhileTheCallingThreadDoesAnother) {
  struct Meeting {
    // False: nobody else came before the deadline.
    bool attend() {
      std::unique_lock lock(mutex);
      ++present;
      changed.notify_all();
      return changed.wait_for(lock, std::chrono::seconds(60), [this] { return present == 2; });
    }
    std::mutex mutex;
    std::condition_variable changed;
    int present = 0;
  };
  class Job final : public ParseJob {
   public:
    explicit Job(Meeting& meeting) : meeting_(meeting) {}
    void run() noexcept override { met = meeting_.attend(); }
    bool met = false;

   private:
    Meeting& meeting_;
  };
  ParseThreads threads(2);
  for (const ParseStage stage : {ParseStage::kBatch, ParseStage::kLines}) {
    // The worker sleeps before the second round: it has to be woken.
    for (int round = 0; round < 2; ++round) {
      Meeting meeting;
      const std::array jobs{std::make_shared<Job>(meeting), std::make_shared<Job>(meeting)};
      for (const auto& job : jobs) threads.begin(job, stage);
      for (const auto& job : jobs) threads.finish(*job, stage);
      for (const auto& job : jobs) ASSERT_TRUE(job->met) << "round " << round;
    }
  }
}

TEST(CriteoLines, HoldNoMoreThanTheirBound) {
  const test::Scratch scratch;
  std::string text;
  for (int64_t row = 0; row < 1200; ++row) text += made_columns(row, '\t') + "\n";
  for (int i = 0; i < 12; ++i) text += std::string(400'000, 'x') + "\n";
  scratch.write("log", text);
  const CriteoFiles files({.paths = {scratch.path("log")}});
  LineReader reader(scratch.path("log"));
  CriteoLines lines(files, Split::kTrain);
  std::vector<int64_t> sizes;
  for (bool more = true; more; sizes.push_back(lines.size())) more = lines.fill(reader, {});
  const auto short_lines = static_cast<int64_t>(CriteoLines::kLines);
  EXPECT_EQ(sizes, (std::vector<int64_t>{short_lines, short_lines, 1200 - 2 * short_lines + 3, 3, 3,
                                         3, 0}));
}

int sixteen() { return 16; }
int two() { return 2; }

TEST(ParseShare, IsWhatRanksLeaveOfTheProcessors) {
  TrainOptions options;
  options.ranks = 2;
  options.ranks_per_node = 2;
  EXPECT_EQ(parse_threads(options, sixteen), 1);  // ranks take all
  options.threads = 3;
  EXPECT_EQ(parse_threads(options, sixteen), 10);
  EXPECT_EQ(parse_threads(options, two), 1);
  options.engine = "gloo";
  EXPECT_EQ(parse_threads(options, sixteen), 5);
  options.threads = 0;
  EXPECT_EQ(parse_threads(options, sixteen), 1);
  options.layers_on_device = true;
  EXPECT_EQ(parse_threads(options, sixteen), 7);
  options.engine = "local";
  EXPECT_EQ(parse_threads(options, sixteen), 14);
  EXPECT_EQ(parse_threads(options, two), 1);
  EXPECT_EQ(parse_threads(options, [] { return 256; }), 16);
  options.parse_threads = 40;
  EXPECT_EQ(parse_threads(options, two), 40);
}

TEST(ParseShare, RanksOfSeveralNodesCountAsRanksOfThisMachine) {
  TrainOptions options;
  options.engine = "gloo";
  options.ranks = 4;
  options.ranks_per_node = 2;
  options.threads = 4;
  EXPECT_EQ(parse_threads(options, sixteen), 1);
  options.threads = 2;
  EXPECT_EQ(parse_threads(options, sixteen), 2);
  options.engine = "local";
  EXPECT_EQ(parse_threads(options, sixteen), 8);
}

int nobody() {
  ADD_FAILURE() << "the library looks for devices to count processors";
  return 16;
}

TEST(ParseShare, ProcessorsAreNotCountedWhereTheyMakeNoDifference) {
  TrainOptions options;
  EXPECT_EQ(parse_threads(options, nobody), 1);  // ranks take all
  options.threads = 3;
  options.parse_threads = 5;
  EXPECT_EQ(parse_threads(options, nobody), 5);
}

TEST(ParsedOnThreads, TrainAndItsPredictionsAreThoseOfOneThread) {
  const test::Scratch scratch;
  const std::string log = scratch.path("log.tsv");
  ASSERT_EQ(test::run({"generate", "--rows", "2000", "--output", log}).exit_code, 0);
  const auto train = [&](const std::string& threads, const std::string& ranks) {
    std::vector<std::string> arguments{"train",
                                       "--format",
                                       "criteo",
                                       "--data",
                                       log,
                                       "--batch",
                                       "64",
                                       "--ranks",
                                       ranks,
                                       "--threads",
                                       "1",
                                       "--output",
                                       scratch.path("predictions." + threads),
                                       "--json",
                                       "--parse-threads",
                                       threads};
    const test::Finished result = test::run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    auto line = result.json();
    line.erase("seconds");
    line.erase("samples_per_second");
    line["predictions"] = test::read_file(scratch.path("predictions." + threads));
    return line;
  };
  for (const std::string ranks : {"1", "3"}) {
    const auto one = train("1", ranks);
    EXPECT_EQ(train("2", ranks), one);
    EXPECT_EQ(train("5", ranks), one);
  }
}

}  // namespace
}  // namespace shardrec::cli
