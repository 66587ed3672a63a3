// The feed: one seeded global order, whatever the number of ranks.
#include "train/batch_feed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "command/user_error.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

// Samples whose one dense number is their number; a pass fails behind `fail_at`.
class CountingLog final : public ClickLog {
 public:
  explicit CountingLog(int64_t samples, int64_t fail_at = INT64_MAX)
      : samples_(samples), fail_at_(fail_at), schema_{1, {}}, bad_lines_({}) {}
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  [[nodiscard]] const BadLines& bad_lines() const override { return bad_lines_; }
  [[nodiscard]] std::unique_ptr<Pass> open(Split, ParseThreads&) override {
    return std::make_unique<CountingPass>(samples_, fail_at_, read_);
  }
  [[nodiscard]] int64_t read() const { return read_; }
  // Returns when so many samples have been read.
  void wait_for(int64_t samples) const {
    for (int64_t read = read_; read < samples; read = read_) read_.wait(read);
  }

 private:
  class CountingPass final : public Pass {
   public:
    CountingPass(int64_t samples, int64_t fail_at, std::atomic<int64_t>& read)
        : samples_(samples), fail_at_(fail_at), read_(read) {}
    bool read(Rows& out, int64_t limit) override {
      const int64_t end = std::min(samples_, at_ + limit);
      const bool any = at_ < end;
      for (; at_ < end; ++at_) {
        if (at_ == fail_at_) throw UserError("line 5 is bad");
        Sample sample;
        sample.dense = {static_cast<float>(at_)};
        out.samples.add(sample);
      }
      read_ = at_;
      read_.notify_all();
      return any;
    }
    [[nodiscard]] double fraction() const override { return 0.5; }

   private:
    int64_t samples_;
    int64_t fail_at_;
    std::atomic<int64_t>& read_;
    int64_t at_ = 0;
  };

  int64_t samples_;
  int64_t fail_at_;
  std::atomic<int64_t> read_{0};
  Schema schema_;
  BadLines bad_lines_;
};

// The global order as the ranks see it, put together again from their slices.
std::vector<float> order_seen(const FeedOptions& options, int64_t samples,
                              std::vector<int64_t>* batches) {
  CountingLog log(samples);
  BatchFeed feed(log, options);
  const auto ranks = static_cast<size_t>(options.readers);
  std::vector<std::vector<std::vector<float>>> seen(ranks);  // [rank][batch]
  {
    std::vector<std::jthread> threads;
    for (size_t r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        BatchFeed::Reader reader(feed, static_cast<int>(r));
        while (const auto batch = reader.next()) {
          const Slice slice = slice_of(batch->size, options.readers, static_cast<int>(r));
          std::vector<float> part;
          for (int64_t i = slice.first; i < slice.last; ++i)
            part.push_back(batch->samples.dense(i)[0]);
          seen[r].push_back(part);
        }
      });
    }
  }
  std::vector<float> order;
  for (size_t b = 0; b < seen[0].size(); ++b) {
    const size_t before = order.size();
    for (size_t r = 0; r < ranks; ++r)
      order.insert(order.end(), seen[r].at(b).begin(), seen[r].at(b).end());
    if (batches != nullptr) batches->push_back(static_cast<int64_t>(order.size() - before));
  }
  return order;
}

TEST(BatchFeed, OrderDependsOnSeedAndEpochOnlyAndHoldsEverySampleOnce) {
  constexpr int64_t kSamples = BatchFeed::kShuffleBlock + 1003;  // two blocks
  const auto options = [](uint64_t seed, int epoch, int readers) {
    return FeedOptions{Split::kTrain, seed, epoch, 500, readers};
  };
  std::vector<int64_t> batches;
  const std::vector<float> one = order_seen(options(5, 0, 1), kSamples, &batches);
  EXPECT_EQ(order_seen(options(5, 0, 3), kSamples, nullptr), one);
  EXPECT_EQ(order_seen(options(5, 0, 4), kSamples, nullptr), one);
  EXPECT_NE(order_seen(options(6, 0, 1), kSamples, nullptr), one);
  EXPECT_NE(order_seen(options(5, 1, 1), kSamples, nullptr), one);
  EXPECT_EQ(std::set<float>(one.begin(), one.end()).size(), static_cast<size_t>(kSamples));
  EXPECT_EQ(batches.back(), kSamples % 500);
  EXPECT_TRUE(
      std::all_of(batches.begin(), batches.end() - 1, [](int64_t size) { return size == 500; }));
}

TEST(BatchFeed, AFeedOfOneRankHasTheSlicesOfThatRank) {
  constexpr int64_t kSamples = BatchFeed::kShuffleBlock + 1003;  // a batch lies in two blocks
  for (const int64_t unit : {1, 128}) {
    FeedOptions options{.split = Split::kTrain, .seed = 5, .batch = 700, .unit = unit};
    const std::vector<float> whole = order_seen(options, kSamples, nullptr);
    options.ranks = 3;
    for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
      CountingLog log(kSamples);
      BatchFeed feed(log, options);
      BatchFeed::Reader reader(feed, 0);
      int64_t before = 0;
      while (const auto batch = reader.next()) {
        const Slice slice = slice_of(batch->size, options.ranks, options.rank, unit);
        ASSERT_EQ(batch->slice.first, slice.first);
        ASSERT_EQ(batch->samples.size(), slice.size());
        for (int64_t i = 0; i < slice.size(); ++i) {
          ASSERT_EQ(batch->samples.dense(i)[0],
                    whole[static_cast<size_t>(before + slice.first + i)]);
        }
        before += batch->size;
      }
      EXPECT_EQ(before, kSamples);
    }
  }
}

TEST(BatchFeed, ThreadsChangeNothingWhereABatchIsLongerThanABlockOrLiesInTwo) {
  constexpr int64_t kSamples = 2 * BatchFeed::kShuffleBlock + 1003;
  for (const int64_t batch : {700, 200000}) {
    std::vector<int64_t> batches;
    std::vector<int64_t> batches_of_one;
    FeedOptions options{.split = Split::kTrain, .seed = 5, .batch = batch};
    const std::vector<float> one = order_seen(options, kSamples, &batches_of_one);
    options.threads = 4;
    EXPECT_EQ(order_seen(options, kSamples, &batches), one);
    EXPECT_EQ(batches, batches_of_one);
    EXPECT_EQ(batches.front(), batch);
    EXPECT_EQ(batches.back(), kSamples % batch);
    EXPECT_EQ(std::set<float>(one.begin(), one.end()).size(), static_cast<size_t>(kSamples));
  }
}

// The blocks whose batches are in the queue, that of the batch behind these, and the next one, while another feed is
// read to its end.
TEST(BatchFeed, ReadsNoFurtherThanTheNextBlockWhileNobodyTakesABatch) {
  struct Case {
    int threads;
    int64_t batch;
    int64_t blocks;
  };
  // Of long batches the queue has two more, whatever the number of threads: ten of half a block.
  for (const Case& of :
       {Case{1, 1024, 2}, Case{4, 1024, 2}, Case{16, BatchFeed::kShuffleBlock / 2, 5 + 1 + 1}}) {
    const FeedOptions options{.split = Split::kTrain, .batch = of.batch, .threads = of.threads};
    CountingLog log((of.blocks + 6) * BatchFeed::kShuffleBlock);
    BatchFeed feed(log, options);
    log.wait_for(of.blocks * BatchFeed::kShuffleBlock);
    order_seen(options, 4 * BatchFeed::kShuffleBlock, nullptr);
    EXPECT_EQ(log.read(), of.blocks * BatchFeed::kShuffleBlock) << of.threads;
  }
}

TEST(BatchFeed, TestRowsKeepTheirOrder) {
  const std::vector<float> order = order_seen({Split::kTest, 5, 0, 64, 2}, 1000, nullptr);
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(BatchFeed, ErrorOfTheReaderReachesEveryRank) {
  CountingLog log(100000, 5);
  BatchFeed feed(log, {Split::kTrain, 0, 0, 10, 2});
  for (int rank = 0; rank < 2; ++rank) {
    BatchFeed::Reader reader(feed, rank);
    EXPECT_THROW(
        {
          while (reader.next() != nullptr) {
          }
        },
        UserError);
  }
}

TEST(BatchFeed, ReadsTheNextBlockWhileNobodyTakesABatch) {
  constexpr int64_t kSamples = 2 * BatchFeed::kShuffleBlock;
  CountingLog log(kSamples + 1);
  BatchFeed feed(log, {Split::kTrain, 0, 0, 1024, 1});
  log.wait_for(kSamples);
  BatchFeed::Reader reader(feed, 0);
  int64_t samples = 0;
  while (const auto batch = reader.next()) samples += batch->samples.size();
  EXPECT_EQ(samples, kSamples + 1);
}

TEST(BatchFeed, AnErrorOfABlockThatWasReadAheadComesBehindTheBatchesBeforeIt) {
  CountingLog log(2 * BatchFeed::kShuffleBlock, BatchFeed::kShuffleBlock + 5);
  BatchFeed feed(log, {Split::kTrain, 0, 0, 1024, 1});
  BatchFeed::Reader reader(feed, 0);
  for (int64_t samples = 0; samples < BatchFeed::kShuffleBlock;) {
    const auto batch = reader.next();
    ASSERT_NE(batch, nullptr);
    samples += batch->samples.size();
  }
  EXPECT_THROW(reader.next(), UserError);
}

TEST(BatchFeed, ARankThatIsGoneHoldsUpNobody) {
  CountingLog log(1000);
  BatchFeed feed(log, {Split::kTest, 0, 0, 10, 2});
  {
    const BatchFeed::Reader gone(feed, 0);
  }
  BatchFeed::Reader reader(feed, 1);
  int batches = 0;
  while (reader.next() != nullptr) ++batches;
  EXPECT_EQ(batches, 100);
}

TEST(BatchFeed, EndsWhenNobodyReads) {
  CountingLog log(1000000);
  BatchFeed feed(log, {Split::kTest, 0, 0, 10, 2});
  BatchFeed::Reader reader(feed, 0);
  EXPECT_NE(reader.next(), nullptr);
}

TEST(Slices, AreContiguousInRankOrderAndDifferByAtMostOne) {
  for (const int64_t global : {0, 1, 3, 512, 513, 1000}) {
    for (const int ranks : {1, 2, 3, 7, 8}) {
      int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const Slice slice = slice_of(global, ranks, rank);
        EXPECT_EQ(slice.first, next);
        EXPECT_GE(slice.size(), global / ranks);
        EXPECT_LE(slice.size(), global / ranks + 1);
        next = slice.last;
      }
      EXPECT_EQ(next, global);
    }
  }
}

TEST(Pack, PutsLengthsAndIdsInFeatureOrder) {
  Samples samples;
  samples.add(Sample{1, {0.5f}, {2, 1}, {10, 11, 12}});
  samples.add(Sample{0, {1.5f}, {0, 2}, {20, 21}});
  samples.add(Sample{1, {2.5f}, {1, 1}, {30, 31}});
  const Schema schema{1, {{"a", 100}, {"b", 100}}};
  PackedBatch batch;
  pack(schema, samples, 0, 3, batch);
  EXPECT_EQ(batch.lengths, (std::vector<int64_t>{2, 0, 1, 1, 2, 1}));
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{10, 11, 30, 12, 20, 21, 31}));
  EXPECT_EQ(batch.labels, (std::vector<float>{1, 0, 1}));
  // They have room for the samples of the batch from the start: three, where growth makes it four.
  EXPECT_EQ(batch.labels.capacity(), 3U);
  EXPECT_EQ(batch.dense.capacity(), 3U);
  pack(schema, samples, 1, 2, batch);
  EXPECT_EQ(batch.size, 1);
  EXPECT_EQ(batch.lengths, (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(batch.ids, (std::vector<int64_t>{20, 21}));
  EXPECT_EQ(batch.dense, (std::vector<float>{1.5f}));
}

}  // namespace
}  // namespace shardrec::cli
