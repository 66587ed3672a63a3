#include "comm/ipc/exports.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "comm/clock.h"
#include "core/error.h"

namespace shardrec::comm::ipc {
namespace {

namespace host = compute::cuda::host;

// CUDA cuts smaller ones out of such a block, all of which peers would see.
constexpr size_t kLeastBytes = size_t{2} << 20;
// A free block that is so many times as large as what is asked for is for larger ones.
constexpr size_t kMostOver = 4;
constexpr auto kClose = std::chrono::milliseconds(2000);
// Of a communicator that is dead: peers are told of that at about the same time.
constexpr auto kCloseDead = std::chrono::milliseconds(500);
constexpr auto kPause = std::chrono::milliseconds(1);

bool lives(const Communicator& communicator) noexcept {
  try {
    communicator.check();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

struct Exports::Allocated final : compute::Allocation {
  Allocated(std::shared_ptr<Exports> of_exports, Block& of_block)
      : exports(std::move(of_exports)), block(of_block) {
    data = block.memory.data();
    size = block.memory.size();
  }
  ~Allocated() override { exports->free(block); }

  std::shared_ptr<Exports> exports;
  Block& block;
};

bool Exports::Ends::are_closed() const noexcept {
  return std::all_of(peers.begin(), peers.end(), [&](const Peer& peer) {
    return words.is_set(peer.rank) || peer.process.has_ended();
  });
}

Exports::Ends::~Ends() {
  if (booked == nullptr) return;
  for (const auto& [at, block] : blocks) {
    booked->fetch_sub(static_cast<int64_t>(block->memory.size()), std::memory_order_relaxed);
  }
}

Exports::Exports(std::shared_ptr<Communicator> communicator, int32_t device,
                 compute::BookedBytes booked)
    : communicator_(std::move(communicator)),
      device_(device),
      ends_(std::make_unique<Ends>(static_cast<size_t>(communicator_->size()))) {
  destroy_closed();
  ends_->booked = std::move(booked);
}

Exports::~Exports() {
  const auto begin = Clock::now();
  const auto most = [&] { return lives(*communicator_) ? kClose : kCloseDead; };
  while (!ends_->are_closed() && Clock::now() < begin + most()) std::this_thread::sleep_for(kPause);
  if (!ends_->are_closed()) {
    const std::lock_guard lock(kept().mutex);
    try {
      kept().ends.emplace_back();
      kept().ends.back() = std::move(ends_);
    } catch (...) {  // without memory to keep it in, it is kept as well
      [[maybe_unused]] const Ends* const for_ever = ends_.release();
    }
  }
  destroy_closed();
}

Exports::Kept& Exports::kept() {
  static Kept& all = *new Kept;
  return all;
}

void Exports::destroy_closed() noexcept {
  const std::lock_guard lock(kept().mutex);
  std::erase_if(kept().ends, [](const auto& ends) { return ends->are_closed(); });
}

void Exports::await_peers(const std::vector<Whereabouts>& ranks) {
  const auto own = static_cast<size_t>(communicator_->rank());
  ends_->peers.reserve(ranks.size());
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (rank == own) continue;
    ends_->peers.push_back({.rank = rank, .process = Process(ranks[rank].process)});
  }
}

std::unique_ptr<compute::Allocation> Exports::allocate(size_t bytes) {
  const std::lock_guard lock(mutex_);
  Block* found = nullptr;
  for (const auto& [at, block] : ends_->blocks) {
    const size_t size = block->memory.size();
    if (!block->is_free || size < bytes || size / kMostOver > std::max(bytes, kLeastBytes))
      continue;
    if (found == nullptr || size < found->memory.size()) found = block.get();
  }
  if (found == nullptr) {
    // Outgrown ones stay: they are no more than this together.
    auto made = std::make_unique<Block>(device_, std::bit_ceil(std::max(bytes, kLeastBytes)));
    made->number = ++numbers_;
    made->is_free = true;
    found = made.get();
    ends_->blocks.emplace(found->memory.data(), std::move(made));
    if (ends_->booked != nullptr) {
      ends_->booked->fetch_add(static_cast<int64_t>(found->memory.size()),
                               std::memory_order_relaxed);
    }
  }
  auto allocated = std::make_unique<Allocated>(shared_from_this(), *found);
  found->is_free = false;
  return allocated;
}

std::unique_ptr<compute::Allocation> Exports::allocate_zeros(size_t /*bytes*/) {
  core::fail(SHARDREC_INTERNAL, "tables do not lie in memory that peers open");
}

std::shared_ptr<Exports::Event> Exports::take_event() {
  Event* const event = &free_event();
  return {event, [held = shared_from_this()](Event* done) {
            const std::lock_guard lock(held->mutex_);
            done->is_free = true;
          }};
}

Exports::Event& Exports::free_event() {
  const std::lock_guard lock(mutex_);
  auto& events = ends_->events;
  auto found =
      std::find_if(events.begin(), events.end(), [](const auto& event) { return event->is_free; });
  if (found == events.end()) {
    auto made = std::make_unique<Event>(device_);
    made->number = events.size() + 1;
    found = events.insert(events.end(), std::move(made));
  }
  (*found)->is_free = false;
  return **found;
}

void Exports::free(Block& block) noexcept {
  const std::lock_guard lock(mutex_);
  block.is_free = true;
}

Place Exports::place_of(const std::byte* at) const {
  const std::lock_guard lock(mutex_);
  const auto behind = ends_->blocks.upper_bound(at);
  if (behind != ends_->blocks.begin()) {
    const Block& block = *std::prev(behind)->second;
    const auto offset = static_cast<size_t>(at - block.memory.data());
    if (offset < block.memory.size()) {
      return {.block = block.number,
              .bytes = block.memory.size(),
              .offset = offset,
              .handle = block.memory.handle()};
    }
  }
  core::fail(SHARDREC_INTERNAL, "the body of a message is not where peers can read it");
}

}  // namespace shardrec::comm::ipc
