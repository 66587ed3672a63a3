// The way of global batches from one reader thread to all ranks.
//
// The order is one function of (log, split, seed, epoch): training samples are read in file order
// in blocks of kShuffleBlock, each block is permuted, and batches are cut from the result; the last
// batch of a pass may be short. Test samples keep their order. Every reader gets every batch, in
// order, and takes its slice, so that the number of ranks changes nothing. Rows become samples
// when their batch is cut; a feed of one rank makes only those of its slice. The queue holds kQueue
// batches; while it is full, the next block is read, at a lower priority than the ranks have. An
// interrupt ends the feed for all readers behind the same batch.
//
// Thread rule: reader r is used by one thread; a reader that is gone (its destructor has run) holds
// up nobody. An error while reading is thrown from next() on every reader.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "data/click_log.h"
#include "launch/ranks.h"

namespace shardrec::cli {

struct GlobalBatch {
  int64_t size = 0;
  Slice slice;          // of the batch: what is here
  Samples samples;      // of the slice
  double fraction = 0;  // of the pass, behind this batch
};

struct FeedOptions {
  Split split = Split::kTrain;
  uint64_t seed = 0;
  int epoch = 0;
  int64_t batch = 1;
  int readers = 1;
  bool interruptible = true;  // false: whoever reads looks for interrupts
  int64_t skip = 0;           // batches of the pass that nobody gets: a run goes on behind them
  int rank = -1;              // only its slices are wanted; -1: whole batches
  int ranks = 1;
  int64_t unit = 1;  // what ranks share a batch by
};

class BatchFeed {
 public:
  static constexpr int64_t kShuffleBlock = 131072;
  static constexpr size_t kQueue = 8;

  BatchFeed(ClickLog& log, const FeedOptions& options);
  BatchFeed(const BatchFeed&) = delete;
  BatchFeed& operator=(const BatchFeed&) = delete;
  ~BatchFeed();

  // An interrupt ended it early. Valid on a reader that has seen the end; the same for all of them.
  [[nodiscard]] bool cut_short() const;

  class Reader {
   public:
    Reader(BatchFeed& feed, int number) : feed_(feed), number_(number) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { feed_.leave(number_); }
    // The next batch; null at the end.
    std::shared_ptr<const GlobalBatch> next() { return feed_.next(number_); }

   private:
    BatchFeed& feed_;
    int number_;
  };

 private:
  static constexpr int64_t kGone = INT64_MAX;
  // Rows that are read between two looks at the queue: less than a millisecond.
  static constexpr int64_t kReadAtOnce = 512;

  // The rows that are shuffled together, while they are read and then.
  struct Block {
    int64_t number = 0;
    Rows rows;
    std::vector<int64_t> order;
    double fraction = 0;  // of the pass, behind this block
    double fraction_before = 0;
    bool complete = false;     // nothing more is read into it
    std::exception_ptr error;  // what reading it ended with
  };

  void produce();
  void hand_out(Pass& pass);
  // At most so many rows more.
  void read_some(Pass& pass, int64_t most, Block& block) const;
  // Reads the rest of a block, and shuffles it. False: the pass had no more rows. Throws what
  // reading threw.
  bool finish_block(Pass& pass, Block& block) const;
  void shuffle(Block& block) const;
  // The samples that are left from the blocks before, then rows of this one.
  GlobalBatch cut(Pass& pass, const Samples& left, const Block& block,
                  std::span<const int64_t> rows) const;
  bool stop_on_interrupt();
  // Reads into `ahead` while there is no room in the queue. False: nobody wants more.
  bool push(GlobalBatch&& batch, Pass& pass, Block& ahead);
  std::shared_ptr<const GlobalBatch> next(int reader);
  void leave(int reader);
  void drop_what_all_have();  // with the mutex held
  [[nodiscard]] bool all_gone() const;

  ClickLog& log_;
  FeedOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const GlobalBatch>> queue_;
  int64_t first_ = 0;            // number of the batch at the queue's front
  std::vector<int64_t> wanted_;  // per reader: the number of the batch it takes next
  bool ended_ = false;
  bool cut_short_ = false;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace shardrec::cli
