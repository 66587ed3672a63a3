// The reader thread behind a feed: blocks shuffled, cut into batches, handed to every reader in
// order.
#include "train/batch_feed.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "command/interrupt.h"
#include "data/counter_random.h"
#include "data/hash_number.h"

namespace shardrec::cli {

namespace {

// How many rows ahead of a row's use it is fetched.
constexpr int64_t kNear = 4;
constexpr int64_t kFar = 8;

// Ranks wait for each other: what takes one's processor holds up all. While they wait, for each
// other or for a batch, the reader has theirs.
void go_behind_ranks() noexcept {
  constexpr int kSteps = 10;
  const auto thread = static_cast<id_t>(::gettid());
  ::setpriority(PRIO_PROCESS, thread, ::getpriority(PRIO_PROCESS, thread) + kSteps);
}

}  // namespace

BatchFeed::BatchFeed(ClickLog& log, const FeedOptions& options)
    : log_(log), options_(options), wanted_(static_cast<size_t>(options.readers), 0) {
  thread_ = std::jthread([this] { produce(); });
}

BatchFeed::~BatchFeed() {
  const std::scoped_lock lock(mutex_);
  std::fill(wanted_.begin(), wanted_.end(), kGone);
  changed_.notify_all();
}

void BatchFeed::read_some(Pass& pass, int64_t most, Block& block) const {
  const int64_t size = options_.split == Split::kTrain ? kShuffleBlock : options_.batch;
  try {
    const int64_t count = std::min(most, size - block.rows.size());
    block.complete = !pass.read(block.rows, count) || block.rows.size() == size;
  } catch (const std::exception&) {
    block.error = std::current_exception();
    block.complete = true;
  }
  block.fraction = pass.fraction();
}

bool BatchFeed::finish_block(Pass& pass, Block& block) const {
  while (!block.complete) read_some(pass, kShuffleBlock, block);
  if (block.error != nullptr) std::rethrow_exception(block.error);
  shuffle(block);
  return block.rows.size() > 0;
}

void BatchFeed::shuffle(Block& block) const {
  std::vector<int64_t>& order = block.order;
  order.resize(static_cast<size_t>(block.rows.size()));
  std::iota(order.begin(), order.end(), 0);
  if (options_.split == Split::kTest) return;
  const uint64_t epoch_seed = hash_number(options_.seed, static_cast<uint64_t>(options_.epoch));
  CounterRandom random(hash_number(epoch_seed, static_cast<uint64_t>(block.number)));
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
}

void BatchFeed::produce() {
  go_behind_ranks();
  try {
    const std::unique_ptr<Pass> pass = log_.open(options_.split);
    hand_out(*pass);
  } catch (const std::exception&) {
    const std::scoped_lock lock(mutex_);
    error_ = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

GlobalBatch BatchFeed::cut(Pass& pass, const Samples& left, const Block& block,
                           std::span<const int64_t> rows) const {
  GlobalBatch batch;
  batch.size = left.size() + static_cast<int64_t>(rows.size());
  batch.slice = options_.rank < 0
                    ? Slice{.first = 0, .last = batch.size}
                    : slice_of(batch.size, options_.ranks, options_.rank, options_.unit);
  // Blocks are long: within one it goes by rows.
  const double share = rows.empty() ? 1
                                    : static_cast<double>(&rows.back() + 1 - block.order.data()) /
                                          static_cast<double>(block.order.size());
  batch.fraction = block.fraction_before + (block.fraction - block.fraction_before) * share;
  const auto row = [&](int64_t i) { return rows[static_cast<size_t>(i - left.size())]; };
  for (int64_t i = batch.slice.first; i < batch.slice.last; ++i) {
    if (i < left.size()) {
      batch.samples.add(left, i);
    } else {
      if (i + kFar < batch.slice.last) block.rows.expect(row(i + kFar));
      if (i + kNear < batch.slice.last) block.rows.expect_soon(row(i + kNear));
      pass.add(block.rows, row(i), batch.samples);
    }
    if (i == batch.slice.first) batch.samples.reserve(batch.slice.size());
  }
  return batch;
}

void BatchFeed::hand_out(Pass& pass) {
  Block block;
  Block ahead;
  Samples left;  // of a batch that goes on with the next block
  int64_t made = 0;
  const auto hand_out_batch = [&](std::span<const int64_t> rows) {
    const bool wanted = made++ < options_.skip || push(cut(pass, left, block, rows), pass, ahead);
    left.clear();
    return wanted;
  };
  while (finish_block(pass, ahead)) {
    std::swap(block, ahead);
    block.fraction_before = ahead.fraction;
    ahead.number = block.number + 1;
    ahead.rows.clear();
    ahead.complete = false;
    std::span<const int64_t> rows = block.order;
    for (;;) {
      const auto wanted = static_cast<size_t>(options_.batch - left.size());
      if (rows.size() < wanted) break;
      if (!hand_out_batch(rows.first(wanted)) || stop_on_interrupt()) return;
      rows = rows.subspan(wanted);
    }
    for (const int64_t row : rows) pass.add(block.rows, row, left);
  }
  if (left.size() == 0) return;
  block.fraction = 1;
  hand_out_batch({});
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

bool BatchFeed::push(GlobalBatch&& batch, Pass& pass, Block& ahead) {
  auto shared = std::make_shared<const GlobalBatch>(std::move(batch));
  std::unique_lock lock(mutex_);
  const auto room = [&] { return queue_.size() < kQueue || all_gone(); };
  while (!room() && !ahead.complete) {
    lock.unlock();
    read_some(pass, kReadAtOnce, ahead);
    lock.lock();
  }
  changed_.wait(lock, room);
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
