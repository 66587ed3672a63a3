// The way of global batches from one reader thread to all ranks.
//
// The order is one function of (log, split, seed, epoch): training samples are read in file order
// in blocks of kShuffleBlock, each block is permuted, and batches are cut from the result; the last
// batch of a pass may be short. Test samples keep their order. Every reader gets every batch, in
// order, and takes its slice, so that the number of ranks changes nothing. The queue holds kQueue
// batches. An interrupt ends the feed for all readers behind the same batch.
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
#include <thread>
#include <vector>

#include "data/click_log.h"

namespace shardrec::cli {

struct GlobalBatch {
  Samples samples;
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

  void produce();
  bool read_block(Pass& pass, int64_t number, Samples& block, std::vector<int64_t>& order);
  bool stop_on_interrupt();
  bool push(GlobalBatch&& batch);  // false: nobody wants more
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
