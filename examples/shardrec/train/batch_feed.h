// The way of global batches from one reader thread to all ranks.
//
// The order is one function of (log, split, seed, epoch): training samples are read in file order
// in blocks of kShuffleBlock, each block is permuted, and batches are cut from the result; the last
// batch of a pass may be short. Test samples keep their order. Every reader gets every batch, in
// order, and takes its slice, so that the number of ranks changes nothing. Rows become samples
// when their batch is cut; a feed of one rank makes only those of its slice. The queue holds kQueue
// batches, and one more for each further thread that parses, as long as these are no more rows than a
// block (but at least one); while it is full, the next block is read, at a lower priority than the ranks have. An interrupt ends the feed for all readers behind the same
// batch.
//
// With several threads, lines are checked, and batches are cut and packed, beside the reader thread, which
// hands both out in their order: the number of threads changes nothing in what a rank trains with.
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
#include "train/row_blocks.h"

namespace shardrec::cli {

struct GlobalBatch {
  int64_t size = 0;
  Slice slice;                      // of the batch: what is here
  Samples samples;                  // of the slice; none where only what is packed is kept
  std::vector<PackedBatch> packed;  // the slice of each reader, or empty: readers pack theirs
  double fraction = 0;              // of the pass, behind this batch
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
  int64_t unit = 1;           // what ranks share a batch by
  int threads = 1;            // that read and parse; several also pack the slices of the readers
  bool keeps_samples = true;  // of batches whose slices are packed
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
  // Rows that are read between two looks at the queue: less than a millisecond, but the first read also fills the
  // ring of lines that are read ahead.
  static constexpr int64_t kReadAtOnce = 512;

  // Rows of a batch that lie in one block.
  struct Part {
    std::shared_ptr<const RowBlock> block;
    std::span<const int64_t> rows;
  };
  // A batch that is cut from its parts.
  struct CutBatch final : public ParseJob {
    explicit CutBatch(BatchFeed& of_feed) : feed(of_feed) {}
    void run() noexcept override;

    BatchFeed& feed;
    std::vector<Part> parts;
    GlobalBatch batch;
    // ready and error: guarded by the feed's mutex.
    bool ready = false;
    std::exception_ptr error;  // what cutting it ended with
  };

  // What the reader thread has of a pass.
  struct Reading {
    Pass& pass;
    ParseThreads& threads;
    RowBlocks& blocks;
    std::shared_ptr<RowBlock> ahead;  // that is read while there is no room in the queue
  };

  void produce();
  void hand_out(Reading& reading);
  // At most so many rows more.
  void read_some(Pass& pass, int64_t most, RowBlock& block) const;
  // Reads the rest of a block, and shuffles it. False: the pass had no more rows. Throws what
  // reading threw.
  bool finish_block(Pass& pass, RowBlock& block) const;
  void shuffle(RowBlock& block) const;
  void cut(const std::vector<Part>& parts, GlobalBatch& batch) const;
  void pack_slices(GlobalBatch& batch) const;
  bool stop_on_interrupt();
  // Batches that the queue has room for.
  [[nodiscard]] size_t queue_room(size_t workers) const;
  // False: nobody wants more.
  bool push(std::vector<Part>&& parts, double fraction, Reading& reading);
  std::shared_ptr<const GlobalBatch> next(int reader);
  void leave(int reader);
  void drop_what_all_have();  // with the mutex held
  [[nodiscard]] bool nobody_reads() const;
  [[nodiscard]] bool all_gone() const;  // with the mutex held

  ClickLog& log_;
  FeedOptions options_;
  const Pass* pass_ = nullptr;  // while batches are cut
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<CutBatch>> queue_;
  int64_t first_ = 0;            // number of the batch at the queue's front
  std::vector<int64_t> wanted_;  // per reader: the number of the batch it takes next
  bool ended_ = false;
  bool cut_short_ = false;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace shardrec::cli
