// The feeds of a run: one for each epoch and one of the test.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "data/click_log.h"
#include "train/batch_feed.h"
#include "train/train_options.h"

namespace shardrec::cli {

// Each feed is made by the first rank that comes to it. Thread rule: any thread.
class Feeds {
 public:
  // Both outlive it.
  Feeds(ClickLog& log, const TrainOptions& options);
  // skip: batches that were trained before.
  BatchFeed& train(int rank, int epoch, int64_t skip) {
    return at(static_cast<size_t>(epoch) + 1, rank, Split::kTrain, epoch, skip);
  }
  BatchFeed& test(int rank) { return at(0, rank, Split::kTest, 0, 0); }

 private:
  BatchFeed& at(size_t index, int rank, Split split, int epoch, int64_t skip);

  ClickLog& log_;
  const TrainOptions& options_;
  int threads_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<BatchFeed>> feeds_;
};

}  // namespace shardrec::cli
