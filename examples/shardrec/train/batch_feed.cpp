// The reader thread behind a feed: blocks shuffled, cut into batches, handed to every reader in
// order.
#include "train/batch_feed.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "command/interrupt.h"
#include "data/counter_random.h"
#include "data/hash_number.h"

namespace shardrec::cli {

BatchFeed::BatchFeed(ClickLog& log, const FeedOptions& options)
    : log_(log), options_(options), wanted_(static_cast<size_t>(options.readers), 0) {
  thread_ = std::jthread([this] { produce(); });
}

BatchFeed::~BatchFeed() {
  const std::scoped_lock lock(mutex_);
  std::fill(wanted_.begin(), wanted_.end(), kGone);
  changed_.notify_all();
}

bool BatchFeed::read_block(Pass& pass, int64_t number, Samples& block,
                           std::vector<int64_t>& order) {
  block.clear();
  const bool shuffle = options_.split == Split::kTrain;
  if (!pass.read(block, shuffle ? kShuffleBlock : options_.batch)) return false;
  order.resize(static_cast<size_t>(block.size()));
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle) return true;
  const uint64_t epoch_seed = hash_number(options_.seed, static_cast<uint64_t>(options_.epoch));
  CounterRandom random(hash_number(epoch_seed, static_cast<uint64_t>(number)));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return true;
}

void BatchFeed::produce() {
  try {
    const std::unique_ptr<Pass> pass = log_.open(options_.split);
    Samples block;
    std::vector<int64_t> order;
    GlobalBatch batch;
    bool wanted = true;
    int64_t made = 0;
    const auto hand_out = [&] {
      if (made++ >= options_.skip) return push(std::exchange(batch, {}));
      batch = {};
      return true;
    };
    for (int64_t number = 0; wanted && read_block(*pass, number, block, order); ++number) {
      for (const int64_t index : order) {
        batch.samples.add(block, index);
        if (batch.samples.size() < options_.batch) continue;
        batch.fraction = pass->fraction();
        wanted = hand_out() && !stop_on_interrupt();
        if (!wanted) break;
      }
    }
    if (wanted && batch.samples.size() > 0) {
      batch.fraction = 1;
      hand_out();
    }
  } catch (const std::exception&) {
    const std::scoped_lock lock(mutex_);
    error_ = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool BatchFeed::stop_on_interrupt() {
  if (!options_.interruptible || !interrupted()) return false;
  const std::scoped_lock lock(mutex_);
  cut_short_ = true;
  return true;
}

bool BatchFeed::cut_short() const {
  const std::scoped_lock lock(mutex_);
  return cut_short_;
}

bool BatchFeed::push(GlobalBatch&& batch) {
  auto shared = std::make_shared<const GlobalBatch>(std::move(batch));
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.size() < kQueue || all_gone(); });
  if (all_gone()) return false;
  queue_.push_back(std::move(shared));
  changed_.notify_all();
  return true;
}

std::shared_ptr<const GlobalBatch> BatchFeed::next(int reader) {
  std::unique_lock lock(mutex_);
  int64_t& wanted = wanted_[static_cast<size_t>(reader)];
  const auto available = [&] { return wanted - first_ < static_cast<int64_t>(queue_.size()); };
  changed_.wait(lock, [&] { return available() || ended_; });
  if (!available()) {
    if (error_ != nullptr) std::rethrow_exception(error_);
    return nullptr;
  }
  auto batch = queue_[static_cast<size_t>(wanted - first_)];
  ++wanted;
  drop_what_all_have();
  return batch;
}

void BatchFeed::leave(int reader) {
  const std::scoped_lock lock(mutex_);
  wanted_[static_cast<size_t>(reader)] = kGone;
  drop_what_all_have();
}

void BatchFeed::drop_what_all_have() {
  const int64_t slowest = *std::min_element(wanted_.begin(), wanted_.end());
  while (!queue_.empty() && first_ < slowest) {
    queue_.pop_front();
    ++first_;
  }
  changed_.notify_all();
}

bool BatchFeed::all_gone() const {
  return std::all_of(wanted_.begin(), wanted_.end(),
                     [](int64_t wanted) { return wanted == kGone; });
}

}  // namespace shardrec::cli
