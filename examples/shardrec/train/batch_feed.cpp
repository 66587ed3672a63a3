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

void BatchFeed::read_some(Pass& pass, int64_t most, RowBlock& block) const {
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

bool BatchFeed::finish_block(Pass& pass, RowBlock& block) const {
  while (!block.complete) read_some(pass, kShuffleBlock, block);
  if (block.error != nullptr) std::rethrow_exception(block.error);
  shuffle(block);
  return block.rows.size() > 0;
}

void BatchFeed::shuffle(RowBlock& block) const {
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
    RowBlocks blocks;
    std::unique_ptr<Pass> pass;
    ParseThreads threads(options_.threads);  // gone before the pass, when all batches are cut
    pass = log_.open(options_.split, threads);
    pass_ = pass.get();
    Reading reading{.pass = *pass, .threads = threads, .blocks = blocks, .ahead = blocks.take()};
    hand_out(reading);
  } catch (const std::exception&) {
    const std::scoped_lock lock(mutex_);
    error_ = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

void BatchFeed::CutBatch::run() noexcept {
  std::exception_ptr failure;
  try {
    if (!feed.nobody_reads()) {
      feed.cut(parts, batch);
      if (feed.options_.threads > 1) feed.pack_slices(batch);
    }
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  parts.clear();
  const std::scoped_lock lock(feed.mutex_);
  ready = true;
  error = failure;
  feed.changed_.notify_all();
}

void BatchFeed::cut(const std::vector<Part>& parts, GlobalBatch& batch) const {
  const Slice& slice = batch.slice;
  Sample scratch;
  int64_t before = 0;  // rows of the batch
  for (const Part& part : parts) {
    const Rows& rows = part.block->rows;
    const auto size = static_cast<int64_t>(part.rows.size());
    const auto row = [&](int64_t i) { return part.rows[static_cast<size_t>(i)]; };
    const int64_t last = std::min(slice.last - before, size);
    for (int64_t i = std::max<int64_t>(slice.first - before, 0); i < last; ++i) {
      if (i + kFar < last) rows.expect(row(i + kFar));
      if (i + kNear < last) rows.expect_soon(row(i + kNear));
      pass_->add(rows, row(i), scratch, batch.samples);
      if (batch.samples.size() == 1) batch.samples.reserve(slice.size());
    }
    before += size;
  }
}

void BatchFeed::pack_slices(GlobalBatch& batch) const {
  batch.packed.resize(static_cast<size_t>(options_.readers));
  for (int reader = 0; reader < options_.readers; ++reader) {
    const int rank = options_.rank < 0 ? reader : options_.rank;
    const Slice slice = slice_of(batch.size, options_.ranks, rank, options_.unit);
    pack(log_.schema(), batch.samples, slice.first - batch.slice.first,
         slice.last - batch.slice.first, batch.packed[static_cast<size_t>(reader)]);
  }
  if (!options_.keeps_samples) batch.samples = Samples();
}

void BatchFeed::hand_out(Reading& reading) {
  std::vector<Part> parts;  // of the next batch
  int64_t size = 0;         // of the parts
  int64_t made = 0;
  const auto hand_out_batch = [&](double fraction) {
    const bool wanted = made++ < options_.skip || push(std::exchange(parts, {}), fraction, reading);
    parts.clear();
    size = 0;
    return wanted;
  };
  while (finish_block(reading.pass, *reading.ahead)) {
    const std::shared_ptr<const RowBlock> block = reading.ahead;
    reading.ahead = reading.blocks.take();
    reading.ahead->number = block->number + 1;
    reading.ahead->fraction_before = block->fraction;
    std::span<const int64_t> rows = block->order;
    while (!rows.empty()) {
      const auto count = static_cast<int64_t>(rows.size());
      const auto taken = static_cast<size_t>(std::min(options_.batch - size, count));
      parts.push_back({.block = block, .rows = rows.first(taken)});
      size += static_cast<int64_t>(taken);
      rows = rows.subspan(taken);
      if (size < options_.batch) break;
      // Blocks are long: within one it goes by rows.
      const double share =
          1 - static_cast<double>(rows.size()) / static_cast<double>(block->order.size());
      const double fraction =
          block->fraction_before + (block->fraction - block->fraction_before) * share;
      if (!hand_out_batch(fraction) || stop_on_interrupt()) return;
    }
  }
  if (size > 0) hand_out_batch(1);
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

size_t BatchFeed::queue_room(size_t workers) const {
  const auto batches_of_block = static_cast<size_t>(kShuffleBlock / options_.batch);
  return kQueue + std::min(workers, std::max<size_t>(batches_of_block, 1));
}

bool BatchFeed::push(std::vector<Part>&& parts, double fraction, Reading& reading) {
  auto cut = std::make_shared<CutBatch>(*this);
  cut->parts = std::move(parts);
  GlobalBatch& batch = cut->batch;
  for (const Part& part : cut->parts) batch.size += std::ssize(part.rows);
  batch.slice = options_.rank < 0
                    ? Slice{.first = 0, .last = batch.size}
                    : slice_of(batch.size, options_.ranks, options_.rank, options_.unit);
  batch.fraction = fraction;
  const auto workers = static_cast<size_t>(reading.threads.count() - 1);
  if (workers == 0) cut->run();
  std::unique_lock lock(mutex_);
  const size_t most = queue_room(workers);
  const auto room = [&] { return queue_.size() < most || all_gone(); };
  while (!room()) {
    lock.unlock();
    bool worked = true;
    if (reading.ahead->complete) {
      worked = reading.threads.help(ParseStage::kBatch);
    } else {
      read_some(reading.pass, kReadAtOnce, *reading.ahead);
    }
    lock.lock();
    if (!worked) changed_.wait(lock, room);
  }
  if (all_gone()) return false;
  lock.unlock();
  if (workers > 0) reading.threads.begin(cut, ParseStage::kBatch);
  lock.lock();
  queue_.push_back(std::move(cut));
  changed_.notify_all();
  return true;
}

std::shared_ptr<const GlobalBatch> BatchFeed::next(int reader) {
  std::unique_lock lock(mutex_);
  int64_t& wanted = wanted_[static_cast<size_t>(reader)];
  const auto available = [&] { return wanted - first_ < static_cast<int64_t>(queue_.size()); };
  const auto wanted_batch = [&] { return queue_[static_cast<size_t>(wanted - first_)]; };
  changed_.wait(lock, [&] { return available() ? wanted_batch()->ready : ended_; });
  if (!available()) {
    if (error_ != nullptr) std::rethrow_exception(error_);
    return nullptr;
  }
  const std::shared_ptr<CutBatch> cut = wanted_batch();
  if (cut->error != nullptr) std::rethrow_exception(cut->error);
  ++wanted;
  drop_what_all_have();
  return {cut, &cut->batch};
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

bool BatchFeed::nobody_reads() const {
  const std::scoped_lock lock(mutex_);
  return all_gone();
}

bool BatchFeed::all_gone() const {
  return std::all_of(wanted_.begin(), wanted_.end(),
                     [](int64_t wanted) { return wanted == kGone; });
}

}  // namespace shardrec::cli
