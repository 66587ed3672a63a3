#include "embedding/tables/copy_room.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/align.h"
#include "core/memory.h"

namespace shardrec::embedding {
namespace {

constexpr size_t kLeastPart = size_t{16} << 10;
constexpr size_t kBlock = size_t{2} << 20;  // a huge page
constexpr size_t kMostReady = size_t{64} << 20;
constexpr size_t kUnchecked = size_t{64} << 20;

class BookedPages final : public compute::Allocation {
 public:
  BookedPages(size_t bytes, compute::BookedBytes booked)
      : pages_(bytes), booked_(std::move(booked)), bytes_(static_cast<int64_t>(bytes)) {
    data = pages_.data();
    size = bytes;
    booked_->fetch_add(bytes_, std::memory_order_relaxed);
  }
  ~BookedPages() override { booked_->fetch_sub(bytes_, std::memory_order_relaxed); }

 private:
  core::Pages pages_;
  compute::BookedBytes booked_;
  int64_t bytes_;
};

void touch(compute::Allocation& block) {
  constexpr size_t kPage = 4096;
  for (size_t at = 0; at < block.size; at += kPage) {
    static_cast<volatile std::byte*>(block.data)[at] = std::byte{0};
  }
}

// Of a block behind `total` bytes: they grow with what there is, so that little is not used.
size_t next_size(size_t total, size_t bytes) {
  return std::clamp(core::align_up(std::max(total, bytes), 64), kLeastPart, kBlock);
}

}  // namespace

CopyRoom::Part CopyRoom::take(Share& share, size_t bytes, size_t unit) {
  if (share.left < unit) {
    share.left = next_size(share.total, bytes);
    share.total += share.left;
    if (share.left == kBlock) {
      share.blocks.push_back(take_block());
      share.room = share.blocks.back()->data;
    } else {
      share.room = take_shared(share.left);
      share.blocks.push_back(shared_.block);
    }
  }
  const size_t got = std::min(bytes, share.left / unit * unit);
  share.left -= got;
  return {std::exchange(share.room, share.room + got), got};
}

std::byte* CopyRoom::take_shared(size_t bytes) {
  if (shared_.block == nullptr || shared_.block->size - shared_.used < bytes) {
    const size_t size = next_size(shared_.total, bytes);
    shared_.block = size == kBlock ? take_block() : allocate(size);
    shared_.used = 0;
    shared_.total += size;
  }
  return shared_.block->data + std::exchange(shared_.used, shared_.used + bytes);
}

void CopyRoom::give_back(Share& share) noexcept {
  const Share free = std::exchange(share, {});
  const std::lock_guard lock(mutex_);
  for (const Block& block : free.blocks) {
    const bool whole = block->size == kBlock && block.use_count() == 1;
    // Of a vector that has had as many: it does not allocate.
    if (whole && !closed_ && ready_.size() < std::min(ready_.capacity(), wanted_ / kBlock)) {
      ready_.push_back(block);
    }
  }
}

CopyRoom::Block CopyRoom::take_block() {
  {
    const std::lock_guard lock(mutex_);
    taken_ += kBlock;
    if (!ready_.empty()) {
      Block block = std::move(ready_.back());
      ready_.pop_back();
      return block;
    }
  }
  return allocate(kBlock);
}

void CopyRoom::make_ready() noexcept try {
  size_t missing = 0;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    wanted_ = std::min(kMostReady, std::max(wanted_, 2 * std::exchange(taken_, 0)));
    const size_t most = wanted_ / kBlock;
    ready_.reserve(most);
    missing = most - std::min(most, ready_.size());
  }
  for (; missing != 0; --missing) {
    Block block = allocate(kBlock);
    touch(*block);
    const std::lock_guard lock(mutex_);
    if (closed_ || ready_.size() == ready_.capacity()) return;
    ready_.push_back(std::move(block));
  }
} catch (const std::exception&) {
  // A step that needs the room will hear of it.
}

void CopyRoom::close() noexcept {
  shared_ = {};
  const std::lock_guard lock(mutex_);
  closed_ = true;
  ready_.clear();
}

CopyRoom::Block CopyRoom::allocate(size_t bytes) {
  if (unchecked_.fetch_add(bytes, std::memory_order_relaxed) + bytes >= kUnchecked) {
    core::require_room(unchecked_.exchange(0, std::memory_order_relaxed), "a copy of rows");
  }
  return std::make_shared<BookedPages>(bytes, booked_);
}

}  // namespace shardrec::embedding
