// What a run wants of the feed of an epoch or of the test.
#include "train/feeds.h"

#include "launch/engines.h"
#include "train/parse_share.h"
#include "train/rank_trainer.h"

namespace shardrec::cli {

Feeds::Feeds(ClickLog& log, const TrainOptions& options)
    : log_(log), options_(options), threads_(parse_threads(options)) {}

BatchFeed& Feeds::at(size_t index, int rank, Split split, int epoch, int64_t skip) {
  const std::scoped_lock lock(mutex_);
  if (feeds_.size() <= index) feeds_.resize(index + 1);
  if (feeds_[index] == nullptr) {
    const bool shared = !in_processes(options_.engine);
    const bool predicts = split == Split::kTest && !options_.output.empty();
    // Rank 0 writes the predictions of all.
    const bool writes = predicts && rank == 0;
    const int64_t batch =
        split == Split::kTest ? RankTrainer::test_batch(options_) : options_.batch;
    FeedOptions feed{.split = split,
                     .seed = options_.seed,
                     .epoch = epoch,
                     .batch = batch,
                     .readers = shared ? options_.ranks : 1,
                     .interruptible = shared,
                     .skip = skip,
                     .ranks = options_.ranks,
                     .unit = RankTrainer::unit(split),
                     .threads = threads_,
                     .keeps_samples = shared ? predicts : writes};
    if (!shared && !writes) feed.rank = rank;
    feeds_[index] = std::make_unique<BatchFeed>(log_, feed);
  }
  return *feeds_[index];
}

}  // namespace shardrec::cli
